// decide: which place computes which experts of a layer: where they live, or as a rule says once the
// tokens of the group have been counted. Its place is the host, whose memory the
// split is in; what reads an expert's position elsewhere gets a copy.
#include "layers/kinds.h"
#include "layers/router_sample.h"
#include "layers/split.h"

namespace hearth {

namespace {

class Decide final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    std::vector<Port> list = {ports::split(s, Access::write),
                              {.value = Value::expert_position,
                               .access = Access::write,
                               .dtype = DType::i32,
                               .extra_rows = s.spec.experts}};
    if (s.decided) {
      list.push_back({.value = Value::router_counts,
                      .access = Access::read,
                      .dtype = DType::f64,
                      .extra_rows = s.spec.experts});
      if (s.samples != SampledRows::none) add_router_sample_ports(s, Access::read, list);
    }
    return list;
  }
  std::vector<BlockUse> blocks(const TaskShape&) const override { return {}; }
  ScratchNeed scratch(const TaskShape&, const OpSet&) const override { return {}; }
  size_t lists(const TaskShape& s) const override {
    if (!s.decided) return 0;
    return list_bytes<double>(s.segments * s.spec.experts) + list_bytes<Place>(s.spec.experts);
  }

  void run(const BodyContext& c) const override {
    const View split = c.out(Value::split), position = c.out(Value::expert_position);
    const std::pmr::vector<Place> places = places_by_rule(c);
    const std::vector<int32_t> order =
        places.empty() ? std::vector<int32_t>{} : c.rule->order(c.layer);
    for (int64_t s = 0; s < c.segments(); ++s) {
      const auto of_segment = [&](View v, Value value, int64_t count) {
        return std::span(v.as<int32_t>() + s * c.stride(value), static_cast<size_t>(count));
      };
      const int64_t before = (c.segments() - 1) * c.stride(Value::split);
      const std::span<int32_t> of_split = of_segment(split, Value::split, split.rows - before);
      const std::span<int32_t> at = of_segment(position, Value::expert_position, c.spec.experts);
      if (places.empty()) {
        split_by_home(c.table, c.layer, of_split, at);
      } else {
        split_by_places(places, of_split, at, order);
      }
    }
  }

 private:
  static void hand_sample(const BodyContext& c, int64_t segment, std::span<const double> counts) {
    RouterSample sample;
    sample.layer = c.layer;
    sample.tokens = tokens_of_segment(c, segment);
    sample.counts = counts;
    if (c.has(Value::sampled_normed)) {
      sample.normed = sampled_rows(c, Value::sampled_normed, segment);
    }
    sample.probs = sampled_rows(c, Value::sampled_probs, segment);
    c.rule->sampled(sample);
  }

  /// Empty: experts are computed where they live.
  static std::pmr::vector<Place> places_by_rule(const BodyContext& c) {
    std::pmr::vector<Place> places(c.lists);
    if (!c.has(Value::router_counts)) return places;
    HEARTH_CHECK(c.rule != nullptr, "decide: no rule that divides experts");
    const ConstView counts = c.in(Value::router_counts);
    auto tokens = list_of<double>(c, c.segments() * c.spec.experts);
    for (int64_t s = 0; s < c.segments(); ++s) {
      const double* const of = counts.as<double>() + s * c.stride(Value::router_counts);
      tokens.insert(tokens.end(), of, of + c.spec.experts);
      if (c.has(Value::sampled_probs)) hand_sample(c, s, {of, of + c.spec.experts});
    }
    places.resize(static_cast<size_t>(c.spec.experts));
    c.rule->divide(c.layer, tokens, places);
    return places;
  }
};

}  // namespace

const Body& decide_body() {
  static const Decide body;
  return body;
}

}  // namespace hearth
