#include "plan/loader/slot_layout.h"

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace hearth {
namespace {

/// The roles that a cargo may have, the first that is present counts.
std::vector<CopyRole> roles_of(Cargo cargo) {
  if (cargo == Cargo::gradient) return {CopyRole::gradient};
  return {CopyRole::working, CopyRole::master, CopyRole::stored};
}

std::optional<DType> type_of(const ParameterTable& table, TensorId id, Cargo cargo,
                             const CopyPolicy& policy) {
  for (const CopyRole role : roles_of(cargo)) {
    if (const auto type = copy_type(table, id, role, policy)) return type;
  }
  return std::nullopt;
}

}  // namespace

size_t SlotLayout::offset_of(TensorId id) const {
  const auto at = std::ranges::find(tensors, id, &SlotTensor::id);
  HEARTH_CHECK(at != tensors.end(), "slot layout: a tensor of another block");
  return at->offset;
}

SlotLayout slot_layout(const ParameterTable& table, BlockId block, Cargo cargo,
                       const CopyPolicy& policy) {
  SlotLayout layout;
  for (TensorId id = table.block(block).begin; id < table.block(block).end; ++id) {
    const std::optional<DType> type = type_of(table, id, cargo, policy);
    if (!type) continue;
    const size_t unit = size_of(*type);
    const size_t offset = align_up(layout.bytes, unit * static_cast<size_t>(kTensorAlignment));
    const size_t bytes = unit * static_cast<size_t>(table.tensor(id).size());
    layout.tensors.push_back({id, *type, offset, bytes});
    layout.bytes = offset + bytes;
  }
  return layout;
}

std::vector<HomeRange> home_ranges(const ParameterTable& table, const SlotLayout& layout,
                                   Cargo cargo) {
  std::vector<HomeRange> ranges;
  for (const SlotTensor& tensor : layout.tensors) {
    View home;
    for (const CopyRole role : roles_of(cargo)) {
      const Copy& copy = table.tensor(tensor.id).copies[static_cast<int>(role)];
      if (!copy.present()) continue;
      home = copy.view;
      break;
    }
    HEARTH_CHECK(
        home && home.contiguous() && home.dtype == tensor.type && home.bytes() == tensor.bytes,
        "slot layout: the table's memory is of another run");
    auto* const data = static_cast<std::byte*>(home.raw());
    if (!ranges.empty()) {
      HomeRange& last = ranges.back();
      const size_t end = tensor.offset + tensor.bytes;
      if (data > last.home &&
          static_cast<size_t>(data - last.home) == tensor.offset - last.offset) {
        last.bytes = end - last.offset;  // with the gap, which is padding in both
        continue;
      }
    }
    ranges.push_back({tensor.offset, data, tensor.bytes});
  }
  return ranges;
}

}  // namespace hearth
