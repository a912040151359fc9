// E: the routed experts of a layer over the rows that were dispatched to them. A task computes all
// experts of the layer, or those that the layer's split gives to its place. Views have the rows of
// all experts; the task touches those of its own, and reads tokens and their gradients through the
// routing. Over several micro-batches, which have one split, each is a segment of the experts' rows
// (ExpertRows).
//
// If ranks share the experts, a task computes the rank's own experts, for the rows of one rank: this one
// or a guest. Gradients of each rank's rows are added up apart, as the tree of logical shards asks.
#include "layers/fetched_experts.h"
#include "layers/kinds.h"
#include "layers/linear.h"
#include "layers/split.h"
#include "ops/width_range.h"

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
  if (s.ranks.divided()) {
    const auto [first, last] = s.ranks.own(s.spec.experts);
    return {{begin + first, begin + last}};
  }
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
  std::pmr::vector<BlockId> blocks;
  int64_t first = 0;
};

Experts all_experts_of(const BodyContext& c) {
  const BlockId layer = first_expert(c.table, c.layer);
  Experts experts{list_of<BlockId>(c, c.spec.experts)};
  if (c.part.all() || c.part.guests) {  // neighbours, which the task names first
    const BlockUse& own = c.blocks.front();
    for (BlockId b = own.begin; b < own.end; ++b) experts.blocks.push_back(b);
    if (c.part.all()) experts.first = own.begin - layer;
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
  Experts experts = all_experts_of(c);
  if (c.wave.all()) return experts;
  std::pmr::vector<BlockId>& blocks = experts.blocks;
  blocks.erase(blocks.begin() + c.wave.end, blocks.end());
  blocks.erase(blocks.begin(), blocks.begin() + c.wave.begin);
  experts.first += c.wave.begin;
  return experts;
}

/// What a task's rows and what it makes of them are called: those of this rank, or of guests.
struct RowValues {
  Value source, gate, up, out, weight, d_rows, d_weight;
};

const RowValues& values_of(const ExpertPart& part) {
  static constexpr RowValues kOwn{Value::route_source, Value::gate,       Value::up,
                                  Value::expert_out,   Value::row_weight, Value::d_rows,
                                  Value::d_row_weight};
  static constexpr RowValues kGuests{
      Value::guest_source, Value::guest_gate,   Value::guest_up,          Value::guest_out,
      Value::guest_weight, Value::d_guest_rows, Value::d_guest_row_weight};
  return part.guests ? kGuests : kOwn;
}

/// What the experts compute on. `by_token`: rows of tokens, to be read through the routing.
struct Inputs {
  Value x, d_out;
  int32_t layer_offset = 0;  // of d_out
  bool by_token = false;
};

Inputs rows_of_inputs(bool guests) {
  if (guests) return {Value::guest_rows, Value::d_guest_out};
  return {Value::rows, Value::d_expert_out};
}

Inputs inputs_of(const TaskShape& s) {
  if (s.part.guests || s.copies_rows()) return rows_of_inputs(s.part.guests);
  return {tokens_of_experts(s), Value::d_residual, 1, true};
}

/// The same from what the task declared.
Inputs inputs_of(const BodyContext& c) {
  for (const Value x : {Value::normed, Value::normed_there}) {
    if (c.has(x)) return {x, Value::d_residual, 1, true};
  }
  return rows_of_inputs(c.part.guests);
}

/// The dropout keys of a map, one for each micro-batch. Empty: there is no dropout, or the rows are
/// those of one micro-batch of this rank.
std::pmr::vector<uint64_t> dropout_keys(const BodyContext& c, Slot slot) {
  auto keys = list_of<uint64_t>(c, c.segments());
  if (!has_dropout(c.settings, c.pass) || (c.segments() == 1 && !c.part.guests)) return keys;
  for (int64_t s = 0; s < c.segments(); ++s) {
    const double of_micro_batch =
        c.part.guests ? c.in(Value::guest_keys)
                            .row<double>(s == 0 ? 0 : s * c.stride(Value::guest_keys))[c.part.place]
                      : c.scalar(Value::dropout_key, s);
    keys.push_back(dropout_key(of_micro_batch, c.layer, slot));
  }
  return keys;
}

/// The rows of a guest, of which this rank has as many as it has experts.
ExpertRows guest_rows(const BodyContext& c, int64_t experts) {
  const auto* const first = c.in(Value::guest_offsets).as<int32_t>() + c.part.place * (experts + 1);
  if (c.segments() == 1) return ConstView(first, DType::i32, 1, experts + 1);
  return ExpertRows::apart(
      {first, DType::i32, c.segments(), experts + 1, c.stride(Value::guest_offsets)},
      c.stride(Value::guest_rows));
}

ExpertRows all_rows(const BodyContext& c, const Inputs& inputs) {
  const ConstView offsets = c.in(Value::route_offsets);
  const int64_t k = c.spec.experts_per_token;
  if (c.segments() == 1) {
    const ExpertRows rows = row_vector(offsets);
    return inputs.by_token ? rows.indexed(row_vector(c.in(Value::route_source)), k) : rows;
  }
  const int64_t stride = c.stride(Value::gate);
  const ExpertRows rows = ExpertRows::apart(
      {offsets.data, DType::i32, c.segments(), c.spec.experts + 1, c.stride(Value::route_offsets)},
      stride);
  if (!inputs.by_token) return rows;
  const ConstView source{c.in(Value::route_source).data, DType::i32, c.segments(), stride,
                         c.stride(Value::route_source)};
  return rows.indexed(source, k, c.stride(inputs.x));
}

class ExpertsPart final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    const bool backward = s.phase == Phase::backward;
    const int64_t hidden = s.spec.hidden, width = s.spec.expert_width;
    const Access saved = backward ? Access::update : Access::write;
    const RowValues& values = values_of(s.part);
    const Inputs inputs = inputs_of(s);
    const auto input = [&](Value value, int32_t layer_offset) {
      return inputs.by_token ? ports::hidden(s, value, Access::read, layer_offset)
                             : ports::rows(s, value, hidden, Access::read);
    };
    std::vector<Port> list = {input(inputs.x, 0), ports::rows(s, values.gate, width, saved),
                              ports::rows(s, values.up, width, saved)};
    if (s.part.guests) {
      list.push_back(ports::guest_offsets(s, Access::read));
    } else {
      list.push_back({.value = Value::route_offsets,
                      .access = Access::read,
                      .dtype = DType::i32,
                      .extra_rows = s.spec.experts + 1});
    }
    add_fetched_port(s, Access::read, list);
    if (!s.part.all() && !s.part.guests) list.push_back(ports::split(s, Access::read));
    if (s.divides && s.away) list.push_back(ports::divided(Access::read));
    if (has_dropout(s.settings, s.pass)) {
      if (s.part.guests) {
        list.push_back(ports::guest_keys(s, Access::read));
      } else {
        add_dropout_port(s, list);
      }
    }
    if (inputs.by_token || has_dropout(s.settings, s.pass)) {
      list.push_back(ports::row_numbers(s, values.source, Access::read));
    }
    if (backward) {
      list.push_back(input(inputs.d_out, inputs.layer_offset));
      list.push_back(ports::rows(s, values.weight, 1, Access::read));
      list.push_back(ports::rows(s, values.d_rows, hidden, Access::write));
      list.push_back(ports::rows(s, values.d_weight, 1, Access::write));
    } else {
      list.push_back(ports::rows(s, values.out, hidden, Access::write));
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
    const auto all = [&](int64_t rows) {
      return s.segments == 1 ? rows : s.segments * rows_apart(rows);
    };
    const int64_t rows = s.tokens * s.spec.experts_per_token;
    return ops.experts_scratch(all(rows), s.segments * experts_in(blocks_of(s)), s.spec.hidden,
                               s.spec.expert_width,
                               s.table.rank_of(begin, begin + static_cast<BlockId>(s.spec.experts)),
                               s.settings.compute, all(inputs_of(s).by_token ? s.tokens : rows));
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

  size_t lists(const TaskShape& s) const override {
    const int64_t most = s.spec.experts;
    return list_bytes<BlockId>(most) + 3 * list_bytes<uint64_t>(s.segments) +
           list_bytes<ExpertView>(most) + list_bytes<ExpertGradient>(most);
  }

  void run(const BodyContext& c) const override {
    const Experts mine = experts_of(c);
    if (mine.blocks.empty()) return;
    const RowValues& values = values_of(c.part);
    // A row is known by its token and which of the token's choices it is.
    const ConstView ids =
        has_dropout(c.settings, c.pass) ? row_vector(c.in(values.source)) : ConstView();
    const auto gate_keys = dropout_keys(c, Slot::gate), up_keys = dropout_keys(c, Slot::up),
               down_keys = dropout_keys(c, Slot::down);
    const int64_t count = std::ssize(mine.blocks);
    auto experts = list_of<ExpertView>(c, count);
    for (const BlockId block : mine.blocks) {
      const auto map = [&](Slot slot, std::span<const uint64_t> keys) {
        return linear_of(c, block, slot, std::nullopt, c.settings.compute, ids, keys);
      };
      experts.push_back(
          {map(Slot::gate, gate_keys), map(Slot::up, up_keys), map(Slot::down, down_keys)});
    }
    const Inputs inputs = inputs_of(c);
    const ExpertRows rows = c.part.guests
                                ? guest_rows(c, count)
                                : all_rows(c, inputs).part(mine.first, mine.first + count);
    auto gradients = list_of<ExpertGradient>(c, count);
    for (const BlockId block : mine.blocks) {
      if (c.phase != Phase::backward) break;
      const auto gradient = [&](Slot slot) { return gradient_of(c, block, slot); };
      gradients.push_back({gradient(Slot::gate), gradient(Slot::up), gradient(Slot::down)});
    }
    const View gate = c.out(values.gate), up = c.out(values.up);
    const WidthRange own = own_columns(c);
    if (own.begin == 0) return compute(c, inputs, rows, experts, gate, up, gradients);
    // The last is divided along its width.
    const auto last = static_cast<size_t>(count - 1);
    if (last > 0) {
      compute(c, inputs, rows.part(0, count - 1), std::span(experts).first(last), gate, up,
              std::span(gradients).first(gradients.empty() ? 0 : last));
    }
    experts.back() = range_of(experts.back(), own);
    if (!gradients.empty()) gradients.back() = range_of(gradients.back(), own);
    compute(c, inputs, rows.part(count - 1, count), std::span(experts).last(1),
            columns_in(gate, own), columns_in(up, own),
            std::span(gradients).last(gradients.empty() ? 0 : 1));
  }

 private:
  /// Of the divided expert, if there is one and the task has it; else all.
  static WidthRange own_columns(const BodyContext& c) {
    const int64_t width = c.spec.expert_width;
    if (!c.has(Value::divided)) return {0, width};
    const int64_t of_device = DividedView(c.in(Value::divided)).width;  // of all micro-batches
    return {of_device, width - of_device};
  }

  static void compute(const BodyContext& c, const Inputs& inputs, const ExpertRows& rows,
                      std::span<const ExpertView> experts, const View& gate, const View& up,
                      std::span<const ExpertGradient> gradients) {
    const RowValues& values = values_of(c.part);
    const ConstView x = c.in(inputs.x);
    if (c.phase != Phase::backward) {
      c.ops.experts_forward(c.stream, x, rows, experts, gate, up, c.out(values.out));
      return;
    }
    c.ops.experts_backward(c.stream, c.in(inputs.d_out, inputs.layer_offset),
                           row_vector(c.in(values.weight)), x, rows, experts, gate, up,
                           c.out(values.d_rows), row_vector(c.out(values.d_weight)), gradients);
  }

  static LinearGradient gradient_of(const BodyContext& c, BlockId block, Slot slot) {
    LinearGradient gradient = c.table.linear_gradient(block, slot, std::nullopt);
    if (!c.part.guests) return gradient;
    for (View* const of : {&gradient.weight, &gradient.bias, &gradient.a, &gradient.b}) {
      *of = c.ranks->gradient_for(c.part.place, *of);
    }
    return gradient;
  }
};

}  // namespace

const Body& experts_body() {
  static const ExpertsPart body;
  return body;
}

}  // namespace hearth
