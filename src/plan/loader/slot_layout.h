// How the tensors of a block lie in a slot of a device, and which home memory they are copied from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/arena.h"
#include "model/parameter_memory.h"

namespace hearth {

/// What travels of a block: the weights that forward and backward read (working copies, else
/// masters, else stored ones), or the accumulators of its gradients.
enum class Cargo : uint8_t { weights, gradient };

/// Slots begin at multiples of this, and their sizes are multiples of it. So a tensor in a slot has
/// the alignment of its home.
inline constexpr size_t kSlotAlignment = sizeof(double) * static_cast<size_t>(kTensorAlignment);

struct SlotTensor {
  TensorId id = 0;
  DType type = DType::f32;
  size_t offset = 0;  // in the slot
  size_t bytes = 0;
};

/// The tensors of a block in table order, with gaps as their homes have them.
struct SlotLayout {
  std::vector<SlotTensor> tensors;
  size_t bytes = 0;  // 0: the block has nothing of the kind

  /// Of a slot that holds it.
  size_t slot_bytes() const { return align_up(bytes, kSlotAlignment); }
  /// Where a tensor begins; a bug if it is not of the block.
  size_t offset_of(TensorId id) const;
};

/// Needs no memory: the plan sizes slots by it.
SlotLayout slot_layout(const ParameterTable& table, BlockId block, Cargo cargo,
                       const CopyPolicy& policy);

/// Bytes of a slot, and the home memory that they are copied from and to.
struct HomeRange {
  size_t offset = 0;  // in the slot
  std::byte* home = nullptr;
  size_t bytes = 0;
};

/// The home memory of a bound table, in the order of the slot. Neighbours that are neighbours in both
/// memories are one range: a block of one copy role is one.
std::vector<HomeRange> home_ranges(const ParameterTable& table, const SlotLayout& layout,
                                   Cargo cargo);

}  // namespace hearth
