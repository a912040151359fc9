// E: the routed experts of a layer over the rows that were dispatched to them. A task computes all
// experts of the layer, or neighbours among them (TaskShape::experts): its blocks say which. Views
// have the rows of all experts; the task touches those of its own. Over several micro-batches, each
// is a segment of the experts' rows (ExpertRows).
#include <map>

#include "layers/kinds.h"
#include "layers/linear.h"

namespace hearth {

namespace {

/// The blocks of experts, and the number of the first in its layer.
struct Experts {
  BlockId begin = 0, end = 0;
  int64_t first = 0;
  int64_t count() const { return end - begin; }
};

/// Those of a task, from its shape or its context.
template <class Of>
Experts experts_of(const Of& of) {
  const BlockId layer = of.table.find_block(BlockKind::expert, of.layer, 0);
  const int32_t last = of.experts.all() ? static_cast<int32_t>(of.spec.experts) : of.experts.end;
  return {layer + of.experts.begin, layer + last, of.experts.begin};
}

ExpertRows all_rows(const BodyContext& c) {
  const ConstView offsets = c.in(Value::route_offsets);
  if (c.segments() == 1) return row_vector(offsets);
  return ExpertRows::apart(
      {offsets.data, DType::i32, c.segments(), c.spec.experts + 1, c.stride(Value::route_offsets)},
      c.stride(Value::rows));
}

class ExpertsPart final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    const bool backward = s.phase == Phase::backward;
    const int64_t k = s.spec.experts_per_token;
    const DType type = s.settings.activations;
    const Access saved = backward ? Access::update : Access::write;
    std::vector<Port> list = {ports::routed(s, Value::rows, Access::read),
                              {.value = Value::route_offsets,
                               .access = Access::read,
                               .dtype = DType::i32,
                               .extra_rows = s.spec.experts + 1},
                              {.value = Value::gate,
                               .access = saved,
                               .dtype = type,
                               .rows_per_token = k,
                               .cols = s.spec.expert_width},
                              {.value = Value::up,
                               .access = saved,
                               .dtype = type,
                               .rows_per_token = k,
                               .cols = s.spec.expert_width}};
    if (has_dropout(s.settings, s.pass)) {
      add_dropout_port(s, list);
      list.push_back({.value = Value::route_source,
                      .access = Access::read,
                      .dtype = DType::i32,
                      .rows_per_token = k});
    }
    if (backward) {
      list.push_back(ports::routed(s, Value::d_expert_out, Access::read));
      list.push_back(
          {.value = Value::row_weight, .access = Access::read, .dtype = type, .rows_per_token = k});
      list.push_back(ports::routed(s, Value::d_rows, Access::write));
      list.push_back({.value = Value::d_row_weight,
                      .access = Access::write,
                      .dtype = type,
                      .rows_per_token = k});
    } else {
      list.push_back(ports::routed(s, Value::expert_out, Access::write));
    }
    return list;
  }

  std::vector<BlockUse> blocks(const TaskShape& s) const override {
    const Experts experts = experts_of(s);
    std::vector<BlockUse> uses;
    add_block_uses(s, experts.begin, experts.end, uses);
    return uses;
  }

  ScratchNeed scratch(const TaskShape& s, const OpSet& ops) const override {
    const Experts experts = experts_of(s);
    const int64_t rows = s.tokens * s.spec.experts_per_token;
    return ops.experts_scratch(s.segments == 1 ? rows : s.segments * rows_apart(rows),
                               s.segments * experts.count(), s.spec.hidden, s.spec.expert_width,
                               s.table.rank_of(experts.begin, experts.end));
  }
  /// As if all experts got equally many rows.
  Work work(const TaskShape& s) const override {
    const Experts experts = experts_of(s);
    const double share = static_cast<double>(experts.count()) / static_cast<double>(s.spec.experts);
    const double forward = 6.0 * share * static_cast<double>(s.spec.experts_per_token) *
                           static_cast<double>(s.spec.hidden) *
                           static_cast<double>(s.spec.expert_width);
    return {matrix_work(s, forward, experts.begin, experts.end), 0, 0};
  }

  void run(const BodyContext& c) const override {
    const Experts blocks = experts_of(c);
    // A row is known by its token and which of the token's choices it is.
    const ConstView ids =
        has_dropout(c.settings, c.pass) ? row_vector(c.in(Value::route_source)) : ConstView();
    std::map<Slot, std::vector<uint64_t>> keys;
    for (const Slot slot : {Slot::gate, Slot::up, Slot::down}) {
      for (int64_t s = 0; c.segments() > 1 && ids && s < c.segments(); ++s) {
        keys[slot].push_back(dropout_key(c, slot, s));
      }
    }
    std::vector<ExpertView> experts;
    for (BlockId block = blocks.begin; block < blocks.end; ++block) {
      const auto map = [&](Slot slot) {
        return linear_of(c, block, slot, std::nullopt, c.settings.compute, ids, keys[slot]);
      };
      experts.push_back({map(Slot::gate), map(Slot::up), map(Slot::down)});
    }
    const ExpertRows rows = all_rows(c).part(blocks.first, blocks.first + blocks.count());
    if (c.phase != Phase::backward) {
      c.ops.experts_forward(c.stream, c.in(Value::rows), rows, experts, c.out(Value::gate),
                            c.out(Value::up), c.out(Value::expert_out));
      return;
    }
    std::vector<ExpertGradient> gradients;
    for (BlockId block = blocks.begin; block < blocks.end; ++block) {
      const auto gradient = [&](Slot slot) {
        return c.table.linear_gradient(block, slot, std::nullopt);
      };
      gradients.push_back({gradient(Slot::gate), gradient(Slot::up), gradient(Slot::down)});
    }
    c.ops.experts_backward(c.stream, c.in(Value::d_expert_out), row_vector(c.in(Value::row_weight)),
                           c.in(Value::rows), rows, experts, c.out(Value::gate), c.out(Value::up),
                           c.out(Value::d_rows), row_vector(c.out(Value::d_row_weight)), gradients);
  }
};

}  // namespace

const Body& experts_body() {
  static const ExpertsPart body;
  return body;
}

}  // namespace hearth
