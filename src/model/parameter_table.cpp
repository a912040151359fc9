#include "model/parameter_table.h"

#include <algorithm>

#include "base/heap_bytes.h"

namespace hearth {

namespace {

uint64_t key_of(BlockKind kind, int32_t layer, int32_t expert) {
  return (static_cast<uint64_t>(kind) << 56) |
         (static_cast<uint64_t>(static_cast<uint32_t>(layer + 1) & 0xfffffffu) << 28) |
         (static_cast<uint32_t>(expert + 1) & 0xfffffffu);
}

const Copy& copy_of(const Tensor& tensor, CopyRole role) {
  return tensor.copies[static_cast<int>(role)];
}

}  // namespace

BlockId ParameterTable::add_block(BlockKind kind, int32_t layer, int32_t expert) {
  const auto id = static_cast<BlockId>(blocks_.size());
  const auto next = static_cast<TensorId>(tensors_.size());
  const bool is_new = by_key_.emplace(key_of(kind, layer, expert), id).second;
  HEARTH_CHECK(is_new, "parameter table: block added twice");
  blocks_.push_back({kind, layer, expert, next, next});
  return id;
}

TensorId ParameterTable::add_tensor(std::string name, Slot slot, int64_t rows, int64_t cols,
                                    bool vector) {
  HEARTH_CHECK(!blocks_.empty(), "parameter table: tensor without block");
  const auto id = static_cast<TensorId>(tensors_.size());
  HEARTH_CHECK(by_name_.emplace(name, id).second, "parameter table: tensor added twice: " + name);
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.block = static_cast<BlockId>(blocks_.size()) - 1;
  tensor.slot = slot;
  tensor.rows = rows;
  tensor.cols = cols;
  tensor.vector = vector;
  tensor.decayed = !vector;
  tensors_.push_back(std::move(tensor));
  blocks_.back().end = id + 1;
  return id;
}

BlockId ParameterTable::add_adapter(BlockId base, double scale) {
  const auto id = static_cast<BlockId>(blocks_.size());
  const auto next = static_cast<TensorId>(tensors_.size());
  const Block of = block(base);
  HEARTH_CHECK(of.kind != BlockKind::adapter && adapters_.emplace(base, id).second,
               "parameter table: a second adapter, or one of an adapter");
  HEARTH_CHECK(blocks_.back().kind != BlockKind::adapter || blocks_.back().base < base,
               "parameter table: adapters not in the order of their bases");
  blocks_.push_back({BlockKind::adapter, of.layer, of.expert, next, next, base, scale});
  return id;
}

void ParameterTable::add_low_rank(TensorId matrix, int64_t rank) {
  const Tensor base = tensor(matrix);
  HEARTH_CHECK(blocks_.back().base == base.block && !base.vector,
               "parameter table: a low-rank pair outside its adapter");
  constexpr std::string_view kWeight = ".weight";
  HEARTH_CHECK(base.name.ends_with(kWeight), "parameter table: no weight's name: " + base.name);
  const std::string stem = base.name.substr(0, base.name.size() - kWeight.size());
  for (const Factor factor : {Factor::a, Factor::b}) {
    const bool is_a = factor == Factor::a;
    const TensorId id = add_tensor(stem + (is_a ? ".lora_A.weight" : ".lora_B.weight"), base.slot,
                                   is_a ? rank : base.rows, is_a ? base.cols : rank, false);
    tensor(id).factor = factor;
    tensor(id).trainable = true;
  }
}

std::optional<TensorId> ParameterTable::find(std::string_view name) const {
  const auto it = by_name_.find(std::string(name));
  if (it == by_name_.end()) return std::nullopt;
  return it->second;
}

BlockId ParameterTable::find_block(BlockKind kind, int32_t layer, int32_t expert) const {
  const auto it = by_key_.find(key_of(kind, layer, expert));
  HEARTH_CHECK(it != by_key_.end(), "parameter table: no such block");
  return it->second;
}

std::optional<TensorId> ParameterTable::find_slot(BlockId block_id, Slot slot) const {
  const Block& b = block(block_id);
  for (TensorId id = b.begin; id < b.end; ++id) {
    if (tensor(id).slot == slot) return id;
  }
  return std::nullopt;
}

View ParameterTable::view(TensorId id, CopyRole role) const {
  const Copy& copy = copy_of(tensor(id), role);
  HEARTH_CHECK(copy.present(), "parameter table: copy absent: " + tensor(id).name);
  return copy.view;
}

bool ParameterTable::is_trained(BlockId id) const {
  const Block& of = block(id);
  for (TensorId t = of.begin; t < of.end; ++t) {
    if (tensor(t).trainable) return true;
  }
  return false;
}

std::optional<BlockId> ParameterTable::adapter_of(BlockId base) const {
  const auto it = adapters_.find(base);
  if (it == adapters_.end()) return std::nullopt;
  return it->second;
}

std::pair<BlockId, BlockId> ParameterTable::adapters_of(BlockId begin, BlockId end) const {
  std::pair<BlockId, BlockId> range{0, 0};
  for (BlockId base = begin; base < end; ++base) {
    const auto adapter = adapter_of(base);
    if (!adapter) continue;
    if (range.second == 0) range.first = *adapter;
    range.second = *adapter + 1;
  }
  return range;
}

int64_t ParameterTable::rank_of(BlockId begin, BlockId end) const {
  int64_t rank = 0;
  const auto [first, last] = adapters_of(begin, end);
  for (BlockId id = first; id < last; ++id) {
    for (TensorId t = block(id).begin; t < block(id).end; ++t) {
      if (tensor(t).factor == Factor::a) rank = std::max(rank, tensor(t).rows);
    }
  }
  return rank;
}

std::optional<TensorId> ParameterTable::find_factor(BlockId base, Slot slot, Factor factor) const {
  const auto adapter = adapter_of(base);
  if (!adapter) return std::nullopt;
  for (TensorId id = block(*adapter).begin; id < block(*adapter).end; ++id) {
    if (tensor(id).slot == slot && tensor(id).factor == factor) return id;
  }
  return std::nullopt;
}

ConstView ParameterTable::weight(TensorId id) const {
  const Tensor& t = tensor(id);
  for (const CopyRole role : {CopyRole::working, CopyRole::master, CopyRole::stored}) {
    const Copy& copy = copy_of(t, role);
    if (!copy.present()) continue;
    HEARTH_CHECK(copy.version == t.version, "parameter table: stale copy read: " + t.name);
    return copy.view;
  }
  HEARTH_CHECK(false, "parameter table: no copy to read: " + t.name);
  return {};
}

LinearView ParameterTable::linear(BlockId block_id, Slot weight_slot, std::optional<Slot> bias,
                                  Compute compute) const {
  const auto id = find_slot(block_id, weight_slot);
  HEARTH_CHECK(id.has_value(), "parameter table: block without the asked weight");
  return linear_with(weight(*id), block_id, weight_slot, bias, compute);
}

LinearView ParameterTable::linear_with(ConstView weight_view, BlockId block_id, Slot weight_slot,
                                       std::optional<Slot> bias, Compute compute) const {
  LinearView linear;
  linear.weight = weight_view;
  linear.compute = compute;
  if (bias) {
    if (const auto b = find_slot(block_id, *bias)) linear.bias = weight(*b);
  }
  if (const auto a = find_factor(block_id, weight_slot, Factor::a)) {
    linear.low_rank.a = weight(*a);
    linear.low_rank.b = weight(*find_factor(block_id, weight_slot, Factor::b));
    linear.low_rank.scale = block(tensor(*a).block).scale;
  }
  return linear;
}

LinearGradient ParameterTable::linear_gradient(BlockId block_id, Slot weight_slot,
                                               std::optional<Slot> bias) const {
  const auto of = [&](std::optional<TensorId> id) { return id ? gradient(*id) : View{}; };
  return {of(find_slot(block_id, weight_slot)),
          of(bias ? find_slot(block_id, *bias) : std::nullopt),
          of(find_factor(block_id, weight_slot, Factor::a)),
          of(find_factor(block_id, weight_slot, Factor::b))};
}

TensorId ParameterTable::head_weight() const {
  if (const auto id = find_slot(find_block(BlockKind::head), Slot::head)) return *id;
  const auto table = find_slot(find_block(BlockKind::embedding), Slot::embedding);
  HEARTH_CHECK(table.has_value(), "parameter table: no embedding");
  return *table;
}

View ParameterTable::gradient(TensorId id) const {
  return copy_of(tensor(id), CopyRole::gradient).view;
}

size_t ParameterTable::memory_bytes() const {
  constexpr size_t kName = map_entry_bytes(sizeof(decltype(by_name_)::value_type), true);
  constexpr size_t kKey = map_entry_bytes(sizeof(decltype(by_key_)::value_type), false);
  constexpr size_t kAdapter = map_entry_bytes(sizeof(decltype(adapters_)::value_type), false);
  size_t bytes = blocks_.size() * sizeof(Block) + by_key_.size() * kKey +
                 adapters_.size() * kAdapter + tensors_.size() * (sizeof(Tensor) + kName);
  for (const Tensor& t : tensors_) bytes += 2 * text_heap_bytes(t.name.size());  // here and there
  return bytes;
}

void ParameterTable::mark_updated(TensorId id, bool with_working) {
  Tensor& t = tensor(id);
  ++t.version;
  t.copies[static_cast<int>(CopyRole::master)].version = t.version;
  if (with_working) t.copies[static_cast<int>(CopyRole::working)].version = t.version;
}

}  // namespace hearth
