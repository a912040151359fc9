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
  const auto* const data = static_cast<const std::byte*>(c.in(Value::fetched_experts).data);
  const auto id = c.table.find_slot(block, slot);
  ConstView weight;
  each_fetched(c.table, c.layer, c.spec.experts, policy_of(c.settings, c.pass == Pass::train),
               [&](TensorId each, DType type, size_t offset) {
                 const Tensor& tensor = c.table.tensor(each);
                 if (each == id) weight = {data + offset, type, tensor.rows, tensor.cols};
               });
  HEARTH_CHECK(weight.data != nullptr, "fetched experts: another rank's expert");
  return weight;
}

}  // namespace hearth
