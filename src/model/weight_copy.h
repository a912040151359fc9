// Helpers for copying pieces of tensors between files and the table.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace hearth {

/// Elements per piece: a buffer of 4 MiB for f32.
inline constexpr int64_t kPieceElements = int64_t{1} << 20;

/// Index of the first of n elements that is NaN or infinite; n if all are finite. For bf16, f16,
/// f32 and f64.
int64_t find_not_finite(DType type, const void* data, int64_t n);

/// The address of element `begin` of a contiguous array.
inline const void* elements_at(const void* data, DType type, int64_t begin) {
  return static_cast<const std::byte*>(data) + static_cast<size_t>(begin) * size_of(type);
}
inline void* elements_at(void* data, DType type, int64_t begin) {
  return static_cast<std::byte*>(data) + static_cast<size_t>(begin) * size_of(type);
}

}  // namespace hearth
