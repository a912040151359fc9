// Views in the form that kernels take, and checks of views.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "ops/view.h"

namespace hearth::HEARTH_GPU {

/// A row-major matrix in device memory; `stride` elements from one row to the next.
template <class T>
struct Matrix {
  T* data = nullptr;
  int64_t stride = 0;
};

template <class T>
Matrix<T> matrix_of(const View& v) {
  return v ? Matrix<T>{v.as<T>(), v.stride} : Matrix<T>{};
}
template <class T>
Matrix<const T> matrix_of(const ConstView& v) {
  return v ? Matrix<const T>{v.as<T>(), v.stride} : Matrix<const T>{};
}

/// Whether every aligned group of four elements can be accessed at once in every row of every view
/// that is not empty: 16 bytes for f32, 8 for 16-bit types.
inline bool in_quads(std::initializer_list<ConstView> views) {
  for (const ConstView& v : views) {
    if (!v) continue;
    const size_t quad = 4 * size_of(v.dtype);
    if (reinterpret_cast<uintptr_t>(v.data) % quad != 0) return false;
    if (v.rows > 1 && v.stride % 4 != 0) return false;
  }
  return true;
}

}  // namespace hearth::HEARTH_GPU
