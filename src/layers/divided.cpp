// An expert that is divided along its width (--divide-experts): its device computes the first columns,
// the host the others.
//
//   pack     at the host: copies the columns' weights, which lie apart at home, one behind the other;
//            they cross the link as one value
//   divided  at the device: the columns of the expert over its rows of a micro-batch. gate and up are in
//            the rows of this expert, which no other task at the device writes; what sums over the width
//            goes to values of its own, which combine and dispatch add to the host's
//   join     at the host, behind its own backward: adds the columns' gradients, which crossed the link
//            as one value, to the expert's home
//
// So weights and gradients of a divided expert pass by no slot, and its home is the host's.
#include "layers/divided.h"

#include <array>

#include "layers/kinds.h"
#include "layers/linear.h"
#include "ops/width_range.h"

namespace hearth {

void add_divided(const BodyContext& c, Value part, Value whole) {
  const DividedView divided(c.in(Value::divided));
  if (!divided.any() || divided.rows == 0) return;
  const View to = c.out(whole).slice(divided.first, divided.rows);
  c.ops.add(c.stream, to, c.in(part).slice(0, divided.rows), to);
}

namespace {

/// The first of the layer; all are alike.
BlockId alike_expert(const ParameterTable& table, int32_t layer) {
  return table.find_block(BlockKind::expert, layer, 0);
}

CopyPolicy policy_of(const TaskShape& s) { return policy_of(s.settings, s.pass == Pass::train); }
CopyPolicy policy_of(const BodyContext& c) { return policy_of(c.settings, c.pass == Pass::train); }

/// The value with room for all columns, as numbers of four bytes.
Port columns_port(const TaskShape& s, Value value, Access access) {
  const size_t bytes =
      divided_bytes(s.table, s.layer, s.spec.expert_width, divided_part_of(value), policy_of(s));
  return {.value = value,
          .access = access,
          .extra_rows = static_cast<int64_t>((bytes + sizeof(float) - 1) / sizeof(float))};
}

bool has_gradient(const TaskShape& s) {
  return divided_bytes(s.table, s.layer, s.spec.expert_width, DividedPart::gradient, policy_of(s)) >
         0;
}

/// The expert itself, of which bodies at the host read weights and gradients.
BlockId expert_of(const BodyContext& c, const DividedView& divided) {
  const SplitView split(c.in(Value::split), c.spec.experts);
  return alike_expert(c.table, c.layer) + split.expert(divided.position);
}

template <class V>
V cut_of(const V& whole, const Tensor& tensor, int64_t width) {
  const WidthRange range{0, width};
  switch (width_cut(tensor)) {
    case WidthCut::rows: return rows_in(whole, range);
    case WidthCut::columns: return columns_in(whole, range);
    case WidthCut::none: break;
  }
  return whole;
}

/// Of a task at the host that reads the split, and works on the homes of the layer's experts.
std::vector<BlockUse> homes(const TaskShape& s, BlockAccess access) {
  const BlockId begin = alike_expert(s.table, s.layer);
  const BlockId end = begin + static_cast<BlockId>(s.spec.experts);
  std::vector<BlockUse> uses{{begin, end, access}};
  if (const auto [first, last] = s.table.adapters_of(begin, end); first != last) {
    uses.push_back({first, last, access});
  }
  return uses;
}

class Pack final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    return {ports::split(s, Access::read), ports::divided(Access::read),
            columns_port(s, Value::divided_weights, Access::write)};
  }
  std::vector<BlockUse> blocks(const TaskShape& s) const override {
    return homes(s, BlockAccess::read_weights);
  }
  ScratchNeed scratch(const TaskShape& s, const OpSet& ops) const override {
    return ops.row_scratch(std::max(s.spec.expert_width, s.spec.hidden), s.spec.hidden);
  }

  void run(const BodyContext& c) const override {
    const DividedView divided(c.in(Value::divided));
    if (!divided.any()) return;
    auto* const to = static_cast<std::byte*>(c.out(Value::divided_weights).raw());
    each_divided(c.table, expert_of(c, divided), divided.width, DividedPart::weights, policy_of(c),
                 [&](TensorId id, DType type, int64_t rows, int64_t cols, size_t offset) {
                   const ConstView from =
                       cut_of(c.table.weight(id), c.table.tensor(id), divided.width);
                   c.ops.cast(c.stream, from, View(to + offset, type, rows, cols));
                 });
  }
};

class Join final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    return {ports::split(s, Access::read), ports::divided(Access::read),
            columns_port(s, Value::divided_gradient, Access::read)};
  }
  std::vector<BlockUse> blocks(const TaskShape& s) const override {
    return homes(s, BlockAccess::add_gradient);
  }
  ScratchNeed scratch(const TaskShape& s, const OpSet& ops) const override {
    return ops.row_scratch(std::max(s.spec.expert_width, s.spec.hidden), s.spec.hidden);
  }

  void run(const BodyContext& c) const override {
    const DividedView divided(c.in(Value::divided));
    if (!divided.any()) return;
    const auto* const from = static_cast<const std::byte*>(c.in(Value::divided_gradient).data);
    each_divided(c.table, expert_of(c, divided), divided.width, DividedPart::gradient, policy_of(c),
                 [&](TensorId id, DType type, int64_t rows, int64_t cols, size_t offset) {
                   const View to = cut_of(c.table.gradient(id), c.table.tensor(id), divided.width);
                   c.ops.add(c.stream, to, ConstView(from + offset, type, rows, cols), to);
                 });
  }
};

constexpr std::array kMaps = {Slot::gate, Slot::up, Slot::down};

/// The columns' maps and where their gradients go.
struct Columns {
  std::array<LinearView, 3> maps;
  std::array<LinearGradient, 3> gradients;

  ExpertView view() const { return {maps[0], maps[1], maps[2]}; }
  ExpertGradient gradient() const { return {gradients[0], gradients[1], gradients[2]}; }
};

size_t number_of(Slot slot) {
  return static_cast<size_t>(std::ranges::find(kMaps, slot) - kMaps.begin());
}

class Divided final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    const bool backward = s.phase == Phase::backward;
    const int64_t width = s.spec.expert_width;
    std::vector<Port> list = {ports::hidden(s, Value::normed, Access::read),
                              ports::rows(s, Value::gate, width, Access::update),
                              ports::rows(s, Value::up, width, Access::update),
                              ports::row_ints(s, Value::route_source, Access::read),
                              ports::positions(s, Access::read),
                              ports::divided(Access::read),
                              columns_port(s, Value::divided_weights, Access::read)};
    if (has_dropout(s.settings, s.pass)) add_dropout_port(s, list);
    if (!backward) {
      list.push_back(ports::hidden(s, Value::divided_out, Access::write));
      return list;
    }
    list.push_back(ports::hidden(s, Value::d_residual, Access::read, 1));
    list.push_back(ports::rows(s, Value::row_weight, 1, Access::read));
    list.push_back(ports::hidden(s, Value::d_divided_rows, Access::write));
    list.push_back(ports::divided_weight(s, Access::write));
    if (has_gradient(s)) {
      list.push_back(columns_port(s, Value::divided_gradient,
                                  s.first_of_group ? Access::write : Access::update));
    }
    return list;
  }

  std::vector<BlockUse> blocks(const TaskShape&) const override { return {}; }

  ScratchNeed scratch(const TaskShape& s, const OpSet& ops) const override {
    const BlockId begin = alike_expert(s.table, s.layer);
    return ops.experts_scratch(s.tokens, 1, s.spec.hidden, s.spec.expert_width,
                               s.table.rank_of(begin, begin + static_cast<BlockId>(s.spec.experts)),
                               s.settings.compute, s.tokens);
  }

  void run(const BodyContext& c) const override {
    const DividedView divided(c.in(Value::divided));
    if (!divided.any()) return;
    const bool backward = c.phase == Phase::backward;
    if (backward) begin_gradient(c, divided);
    if (divided.rows == 0) return;
    const int64_t first = divided.first, n = divided.rows;
    const ConstView source(c.in(Value::route_source).as<int32_t>() + first, DType::i32, 1, n);
    const ConstView position = row_vector(c.in(Value::expert_position));
    const ExpertRows rows =
        ExpertRows(position.columns(c.spec.experts, 2)).indexed(source, c.spec.experts_per_token);
    const auto own = [&](Value value) {
      return c.out(value).slice(first, n).columns(0, divided.width);
    };
    const Columns columns = columns_of(c, divided, source);
    const std::array experts = {columns.view()};
    const ConstView x = c.in(Value::normed);
    if (!backward) {
      c.ops.experts_forward(c.stream, x, rows, experts, own(Value::gate), own(Value::up),
                            c.out(Value::divided_out).slice(0, n));
      return;
    }
    const std::array gradients = {columns.gradient()};
    c.ops.experts_backward(c.stream, c.in(Value::d_residual, 1),
                           row_vector(c.in(Value::row_weight).slice(first, n)), x, rows, experts,
                           own(Value::gate), own(Value::up),
                           c.out(Value::d_divided_rows).slice(0, n),
                           row_vector(c.out(Value::d_divided_weight).slice(0, n)), gradients);
  }

 private:
  /// The group's first micro-batch clears what all of them add to.
  static void begin_gradient(const BodyContext& c, const DividedView& divided) {
    const auto port = std::ranges::find_if(c.ports, [](const BoundPort& bound) {
      return bound.port.value == Value::divided_gradient;
    });
    if (port == c.ports.end() || port->port.access != Access::write) return;
    const size_t bytes =
        divided_bytes(c.table, c.layer, divided.width, DividedPart::gradient, policy_of(c));
    const auto floats = static_cast<int64_t>(bytes / sizeof(float));
    c.ops.clear(c.stream, View(port->data, DType::f32, 1, floats));
  }

  static Columns columns_of(const BodyContext& c, const DividedView& divided, ConstView ids) {
    Columns columns;
    const BlockId expert = alike_expert(c.table, c.layer);  // as large as any other
    const std::optional<BlockId> adapter = c.table.adapter_of(expert);
    const auto* const weights = static_cast<const std::byte*>(c.in(Value::divided_weights).data);
    each_divided(c.table, expert, divided.width, DividedPart::weights, policy_of(c),
                 [&](TensorId id, DType type, int64_t rows, int64_t cols, size_t offset) {
                   const Tensor& tensor = c.table.tensor(id);
                   LinearView& map = columns.maps[number_of(tensor.slot)];
                   const ConstView view(weights + offset, type, rows, cols);
                   if (tensor.factor == Factor::none) map.weight = view;
                   if (tensor.factor == Factor::a) map.low_rank.a = view;
                   if (tensor.factor == Factor::b) map.low_rank.b = view;
                 });
    for (size_t i = 0; i < kMaps.size(); ++i) {
      LinearView& map = columns.maps[i];
      map.compute = c.settings.compute;
      if (!map.low_rank) continue;
      map.low_rank.scale = c.table.block(*adapter).scale;
      if (!has_dropout(c.settings, c.pass)) continue;
      const uint64_t key = dropout_key(c.scalar(Value::dropout_key), c.layer, kMaps[i]);
      map.low_rank.dropout = {c.settings.lora_dropout, key, ids};
    }
    if (!c.has(Value::divided_gradient)) return columns;
    auto* const gradient = static_cast<std::byte*>(c.out(Value::divided_gradient).raw());
    each_divided(c.table, expert, divided.width, DividedPart::gradient, policy_of(c),
                 [&](TensorId id, DType type, int64_t rows, int64_t cols, size_t offset) {
                   const Tensor& tensor = c.table.tensor(id);
                   LinearGradient& to = columns.gradients[number_of(tensor.slot)];
                   const View view(gradient + offset, type, rows, cols);
                   if (tensor.factor == Factor::none) to.weight = view;
                   if (tensor.factor == Factor::a) to.a = view;
                   if (tensor.factor == Factor::b) to.b = view;
                 });
    return columns;
  }
};

}  // namespace

const Body& pack_body() {
  static const Pack body;
  return body;
}

const Body& divided_body() {
  static const Divided body;
  return body;
}

const Body& join_body() {
  static const Join body;
  return body;
}

}  // namespace hearth
