// E: the routed experts of a layer over the rows that were dispatched to them.
#include "layers/kinds.h"
#include "layers/linear.h"

namespace hearth {

namespace {

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
    const auto [begin, end] = blocks_of(s);
    std::vector<BlockUse> uses;
    add_block_uses(s, begin, end, uses);
    return uses;
  }

  ScratchNeed scratch(const TaskShape& s, const OpSet& ops) const override {
    const auto [begin, end] = blocks_of(s);
    const int64_t rank = s.table.rank_of(begin, end);
    return ops.experts_scratch(s.tokens * s.spec.experts_per_token, s.spec.experts, s.spec.hidden,
                               s.spec.expert_width, rank);
  }
  /// A part counts as if the rows were spread evenly over the experts.
  Work work(const TaskShape& s) const override {
    const auto [begin, end] = blocks_of(s);
    const double forward = 6.0 * static_cast<double>(s.spec.experts_per_token) *
                           static_cast<double>(s.spec.hidden) *
                           static_cast<double>(s.spec.expert_width) *
                           static_cast<double>(end - begin) / static_cast<double>(s.spec.experts);
    return {matrix_work(s, forward, begin, end), 0, 0};
  }

  void run(const BodyContext& c) const override {
    const auto [first, last] = blocks_of(c);
    // A row is known by its token and which of the token's choices it is.
    const ConstView ids =
        has_dropout(c.settings, c.pass) ? row_vector(c.in(Value::route_source)) : ConstView();
    std::vector<ExpertView> experts;
    for (BlockId expert = first; expert < last; ++expert) {
      const auto map = [&](Slot slot) {
        return linear_of(c, expert, slot, std::nullopt, c.settings.compute, ids);
      };
      experts.push_back({map(Slot::gate), map(Slot::up), map(Slot::down)});
    }
    // The rows of a part lie where they lie in the whole.
    const ConstView offsets =
        row_vector(c.in(Value::route_offsets).slice(c.experts.begin, last - first + 1));
    if (c.phase != Phase::backward) {
      c.ops.experts_forward(c.stream, c.in(Value::rows), offsets, experts, c.out(Value::gate),
                            c.out(Value::up), c.out(Value::expert_out));
      return;
    }
    std::vector<ExpertGradient> gradients;
    for (BlockId expert = first; expert < last; ++expert) {
      const auto gradient = [&](Slot slot) {
        return c.table.linear_gradient(expert, slot, std::nullopt);
      };
      gradients.push_back({gradient(Slot::gate), gradient(Slot::up), gradient(Slot::down)});
    }
    c.ops.experts_backward(c.stream, c.in(Value::d_expert_out), row_vector(c.in(Value::row_weight)),
                           c.in(Value::rows), offsets, experts, c.out(Value::gate),
                           c.out(Value::up), c.out(Value::d_rows),
                           row_vector(c.out(Value::d_row_weight)), gradients);
  }

 private:
  /// The blocks of the task's experts.
  template <class Of>
  static std::pair<BlockId, BlockId> blocks_of(const Of& of) {
    const BlockId first = of.table.find_block(BlockKind::expert, of.layer, 0);
    const auto count = static_cast<BlockId>(of.spec.experts);
    return of.experts.all() ? std::pair{first, first + count}
                            : std::pair{first + of.experts.begin, first + of.experts.end};
  }
};

}  // namespace

const Body& experts_body() {
  static const ExpertsPart body;
  return body;
}

}  // namespace hearth
