// decide: which place computes which experts of a layer: where they live, or as a rule says once the
// tokens of the group have been counted. Its place is the host, whose memory the
// split is in; what reads an expert's position elsewhere gets a copy.
#include <algorithm>

#include "layers/kinds.h"
#include "layers/router_sample.h"
#include "layers/split.h"

namespace hearth {

namespace {

class Decide final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    std::vector<Port> list = {ports::split(s, Access::write), ports::positions(s, Access::write)};
    if (s.divides) list.push_back(ports::divided(Access::write));
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
    return list_bytes<double>(s.segments * s.spec.experts) + list_bytes<Place>(s.spec.experts) +
           list_bytes<int32_t>(s.spec.experts);
  }

  void run(const BodyContext& c) const override {
    const View split = c.out(Value::split), position = c.out(Value::expert_position);
    const std::pmr::vector<double> tokens = counted_tokens(c);
    const std::pmr::vector<Place> places = places_by_rule(c, tokens);
    const std::vector<int32_t> by_rule =
        places.empty() ? std::vector<int32_t>{} : c.rule->order(c.layer);
    const DividedExpert divided =
        c.has(Value::divided) ? c.rule->divided(c.layer) : DividedExpert{};
    const std::pmr::vector<int32_t> order = with_divided_last(c, by_rule, places, divided);
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
      if (c.has(Value::divided)) tell_divided(c, s, of_split, divided, tokens);
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

  /// [micro-batches, experts], the choices of each expert. Empty: no rule asks.
  static std::pmr::vector<double> counted_tokens(const BodyContext& c) {
    std::pmr::vector<double> tokens(c.lists);
    if (!c.has(Value::router_counts)) return tokens;
    HEARTH_CHECK(c.rule != nullptr, "decide: no rule that divides experts");
    tokens.reserve(static_cast<size_t>(c.segments() * c.spec.experts));
    const ConstView counts = c.in(Value::router_counts);
    for (int64_t s = 0; s < c.segments(); ++s) {
      const double* const of = counts.as<double>() + s * c.stride(Value::router_counts);
      tokens.insert(tokens.end(), of, of + c.spec.experts);
      if (c.has(Value::sampled_probs)) hand_sample(c, s, {of, of + c.spec.experts});
    }
    return tokens;
  }

  /// Empty: experts are computed where they live.
  static std::pmr::vector<Place> places_by_rule(const BodyContext& c,
                                                std::span<const double> tokens) {
    std::pmr::vector<Place> places(c.lists);
    if (tokens.empty()) return places;
    places.resize(static_cast<size_t>(c.spec.experts));
    c.rule->divide(c.layer, tokens, places);
    return places;
  }

  /// The order of the rule; then the host's experts, so that the divided one is its last.
  static std::pmr::vector<int32_t> with_divided_last(const BodyContext& c,
                                                     std::span<const int32_t> by_rule,
                                                     std::span<const Place> places,
                                                     const DividedExpert& divided) {
    auto order = list_of<int32_t>(c, c.spec.experts);
    order.assign(by_rule.begin(), by_rule.end());
    if (!divided.any()) return order;
    const Place host = places[static_cast<size_t>(divided.expert)];
    for (int32_t e = 0; e < std::ssize(places); ++e) {
      if (places[static_cast<size_t>(e)] == host && e != divided.expert) order.push_back(e);
    }
    return order;
  }

  static void tell_divided(const BodyContext& c, int64_t segment, std::span<const int32_t> of_split,
                           const DividedExpert& divided, std::span<const double> tokens) {
    int32_t* const value = c.out(Value::divided).as<int32_t>() + segment * c.stride(Value::divided);
    int32_t* const rows = c.out(Value::expert_position).as<int32_t>() +
                          segment * c.stride(Value::expert_position) + c.spec.experts;
    std::fill_n(value, DividedView::kSize, 0);
    std::fill_n(rows, 2, 0);
    if (!divided.any()) return;
    HEARTH_CHECK(0 < divided.width && divided.width < c.spec.expert_width,
                 "decide: a range that is no part of an expert's width");
    const std::span<const double> own = tokens.subspan(
        static_cast<size_t>(segment * c.spec.experts), static_cast<size_t>(c.spec.experts));
    for (; of_split[static_cast<size_t>(value[0])] != divided.expert; ++value[0]) {
      value[2] +=
          static_cast<int32_t>(own[static_cast<size_t>(of_split[static_cast<size_t>(value[0])])]);
    }
    value[1] = static_cast<int32_t>(divided.width);
    value[3] = rows[1] = static_cast<int32_t>(own[static_cast<size_t>(divided.expert)]);
  }
};

}  // namespace

const Body& decide_body() {
  static const Decide body;
  return body;
}

}  // namespace hearth
