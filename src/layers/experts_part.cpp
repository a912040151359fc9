// E: the routed experts of a layer over the rows that were dispatched to them. A task computes all
// experts of the layer, or those that the layer's split gives to its place. Views have the rows of
// all experts; the task touches those of its own. Over several micro-batches, which have one split,
// each is a segment of the experts' rows (ExpertRows).
#include <map>

#include "layers/kinds.h"
#include "layers/linear.h"
#include "layers/split.h"

namespace hearth {

namespace {

BlockId first_expert(const ParameterTable& table, int32_t layer) {
  return table.find_block(BlockKind::expert, layer, 0);
}

/// The blocks of a task's experts, as runs of neighbours: those that live at the place of its part. If
/// a rule decides, any may be computed there.
std::vector<std::pair<BlockId, BlockId>> blocks_of(const TaskShape& s) {
  const BlockId begin = first_expert(s.table, s.layer);
  const BlockId end = begin + static_cast<BlockId>(s.spec.experts);
  if (s.part.all() || s.decided) return {{begin, end}};
  return blocks_at(s.table, begin, end, s.part.place);
}

int64_t experts_in(const std::vector<std::pair<BlockId, BlockId>>& runs) {
  int64_t count = 0;
  for (const auto& [begin, end] : runs) count += end - begin;
  return count;
}

/// The experts of a task in the order of computing, and the position of the first among all.
struct Experts {
  std::vector<BlockId> blocks;
  int64_t first = 0;
};

Experts all_experts_of(const BodyContext& c) {
  const BlockId layer = first_expert(c.table, c.layer);
  Experts experts;
  if (c.part.all()) {
    for (BlockId e = 0; e < c.spec.experts; ++e) experts.blocks.push_back(layer + e);
    return experts;
  }
  const SplitView split(c.in(Value::split), c.spec.experts);
  const auto [begin, end] = split.positions(c.part.place);
  experts.first = begin;
  for (int32_t i = begin; i < end; ++i) experts.blocks.push_back(layer + split.expert(i));
  return experts;
}

/// Those of the wave.
Experts experts_of(const BodyContext& c) {
  Experts all = all_experts_of(c);
  if (c.wave.all()) return all;
  return {{all.blocks.begin() + c.wave.begin, all.blocks.begin() + c.wave.end},
          all.first + c.wave.begin};
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
    if (!s.part.all()) list.push_back(ports::split(s, Access::read));
    if (has_dropout(s.settings, s.pass)) {
      add_dropout_port(s, list);
      list.push_back(ports::row_ints(s, Value::route_source, Access::read));
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
    std::vector<BlockUse> uses;
    for (const auto& [begin, end] : blocks_of(s)) add_block_uses(s, begin, end, uses);
    return uses;
  }

  ScratchNeed scratch(const TaskShape& s, const OpSet& ops) const override {
    const BlockId begin = first_expert(s.table, s.layer);
    const int64_t rows = s.tokens * s.spec.experts_per_token;
    return ops.experts_scratch(
        s.segments == 1 ? rows : s.segments * rows_apart(rows),
        s.segments * experts_in(blocks_of(s)), s.spec.hidden, s.spec.expert_width,
        s.table.rank_of(begin, begin + static_cast<BlockId>(s.spec.experts)));
  }
  /// As if all experts got equally many rows.
  Work work(const TaskShape& s) const override {
    const double forward = 6.0 * static_cast<double>(s.spec.experts_per_token) *
                           static_cast<double>(s.spec.hidden) *
                           static_cast<double>(s.spec.expert_width);
    double work = 0;
    for (const auto& [begin, end] : blocks_of(s)) {
      const int64_t count = s.decided && !s.part.all() ? s.part.experts : end - begin;
      const double share = static_cast<double>(count) / static_cast<double>(s.spec.experts);
      work += matrix_work(s, share * forward, begin, end);
    }
    return {work, 0, 0};
  }

  void run(const BodyContext& c) const override {
    const Experts mine = experts_of(c);
    if (mine.blocks.empty()) return;
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
    for (const BlockId block : mine.blocks) {
      const auto map = [&](Slot slot) {
        return linear_of(c, block, slot, std::nullopt, c.settings.compute, ids, keys[slot]);
      };
      experts.push_back({map(Slot::gate), map(Slot::up), map(Slot::down)});
    }
    const ExpertRows rows = all_rows(c).part(mine.first, mine.first + std::ssize(mine.blocks));
    if (c.phase != Phase::backward) {
      c.ops.experts_forward(c.stream, c.in(Value::rows), rows, experts, c.out(Value::gate),
                            c.out(Value::up), c.out(Value::expert_out));
      return;
    }
    std::vector<ExpertGradient> gradients;
    for (const BlockId block : mine.blocks) {
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
