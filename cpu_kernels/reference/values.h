// Reads and writes elements of any stored type as double.
#pragma once

#include "ops/view.h"

namespace hearth {

/// Calls f(float{}) or f(double{}), by the type of activations.
template <class F>
void for_type(DType activations, F&& f) {
  switch (activations) {
    case DType::f32: return f(float{});
    case DType::f64: return f(double{});
    default: HEARTH_CHECK(false, "reference: activations are f32 or f64");
  }
}

/// Element (r, c) of a view of any floating type.
inline double value(const ConstView& v, int64_t r, int64_t c) {
  switch (v.dtype) {
    case DType::f64: return v.row<double>(r)[c];
    case DType::f32: return v.row<float>(r)[c];
    case DType::bf16: return to_float(v.row<bf16>(r)[c]);
    case DType::f16: return to_float(v.row<f16>(r)[c]);
    default: HEARTH_CHECK(false, "reference: expected a floating type");
  }
}

/// Writes x, rounded to the view's type; for 16-bit types it is rounded to f32 first.
inline void set_value(const View& v, int64_t r, int64_t c, double x) {
  switch (v.dtype) {
    case DType::f64: v.row<double>(r)[c] = x; return;
    case DType::f32: v.row<float>(r)[c] = static_cast<float>(x); return;
    case DType::bf16: v.row<bf16>(r)[c] = to_bf16(static_cast<float>(x)); return;
    case DType::f16: v.row<f16>(r)[c] = to_f16(static_cast<float>(x)); return;
    default: HEARTH_CHECK(false, "reference: expected a floating type");
  }
}

inline void add_value(const View& v, int64_t r, int64_t c, double x) {
  set_value(v, r, c, value(v, r, c) + x);
}

/// x as an operand of a product: rounded if `compute` is bf16.
inline double operand(double x, Compute compute) {
  return compute == Compute::bf16 ? round_to_bf16(static_cast<float>(x)) : x;
}

}  // namespace hearth
