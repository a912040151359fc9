#include "layers/fetched_experts.h"

#include <algorithm>

namespace hearth {

size_t fetched_bytes(const ParameterTable& table, int32_t layer, int64_t experts,
                     const CopyPolicy& policy) {
  return each_fetched(table, layer, experts, policy, [](TensorId, DType, size_t) {});
}

void add_fetched_port(const TaskShape& s, Access access, std::vector<Port>& ports) {
  if (!s.fetches) return;
  const size_t bytes = fetched_bytes(s.table, s.layer, s.spec.experts, policy_of(s.settings, true));
  const size_t floats = std::max<size_t>(1, (bytes + sizeof(float) - 1) / sizeof(float));
  ports.push_back({.value = Value::fetched_experts,
                   .access = access,
                   .extra_rows = static_cast<int64_t>(floats)});
}

ConstView fetched_weight(const BodyContext& c, BlockId block, Slot slot) {
  HEARTH_CHECK(c.table.block(block).fetched, "fetched experts: one that this rank keeps");
  int64_t before = 0;  // experts of a layer are alike
  const BlockId first = c.table.find_block(BlockKind::expert, c.layer, 0);
  for (BlockId b = first; b < block; ++b) before += c.table.block(b).fetched ? 1 : 0;
  const auto* const data = static_cast<const std::byte*>(c.in(Value::fetched_experts).data);
  const auto wanted = c.table.find_slot(block, slot);
  ConstView weight;
  size_t offset = 0;
  const size_t bytes = each_fetched_tensor(c.table, block, policy_of(c.settings, true),
                                           [&](TensorId id, DType type, size_t at) {
                                             if (id != wanted) return;
                                             const Tensor& tensor = c.table.tensor(id);
                                             weight = {data, type, tensor.rows, tensor.cols};
                                             offset = at;
                                           });
  HEARTH_CHECK(weight.data != nullptr, "fetched experts: a block without the asked weight");
  weight.data = data + static_cast<size_t>(before) * bytes + offset;
  return weight;
}

}  // namespace hearth
