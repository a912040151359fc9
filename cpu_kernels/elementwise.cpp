#include "base/dtype.h"
#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/elements.h"
#include "cpu_kernels/swiglu.h"
#include "cpu_kernels/vector_math.h"

namespace hearth {
namespace {

HEARTH_CLONES void add_rows(const float* a, const float* b, float* y, int64_t n) {
  HEARTH_SAME_OR_APART
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

const std::byte* at(const ConstView& v, int64_t row, int64_t col) {
  return static_cast<const std::byte*>(v.data) +
         static_cast<size_t>(row * v.stride + col) * size_of(v.dtype);
}

}  // namespace

HEARTH_CLONES void swiglu(const float* gate, const float* up, float* h, int64_t n) {
  HEARTH_SAME_OR_APART
  for (int64_t i = 0; i < n; ++i) h[i] = silu(gate[i]) * up[i];
}

HEARTH_CLONES void swiglu_gradient(const float* dh, float* gate, float* up, float* h, int64_t n) {
  HEARTH_SAME_OR_APART
  for (int64_t i = 0; i < n; ++i) {
    const float d = dh[i], g = gate[i], u = up[i], s = sigmoid(g);
    gate[i] = d * u * s * (1.0f + g * (1.0f - s));
    up[i] = d * g * s;
    h[i] = g * s * u;
  }
}

void CpuOps::swiglu_forward(Stream& stream, ConstView gate, ConstView up, View h) const {
  HEARTH_CHECK(has_shape(up, gate.rows, gate.cols) && has_shape(h, gate.rows, gate.cols),
               "swiglu_forward: shapes");
  for_elements(host_stream(stream), {gate, up, h}, [&](const Elements& e) {
    swiglu(gate.row<float>(e.row) + e.col, up.row<float>(e.row) + e.col,
           h.row<float>(e.row) + e.col, e.count);
  });
}

void CpuOps::swiglu_backward(Stream& stream, ConstView dh, View gate, View up, View h) const {
  HEARTH_CHECK(has_shape(dh, gate.rows, gate.cols) && has_shape(up, gate.rows, gate.cols) &&
                   has_shape(h, gate.rows, gate.cols),
               "swiglu_backward: shapes");
  for_elements(host_stream(stream), {dh, gate, up, h}, [&](const Elements& e) {
    swiglu_gradient(dh.row<float>(e.row) + e.col, gate.row<float>(e.row) + e.col,
                    up.row<float>(e.row) + e.col, h.row<float>(e.row) + e.col, e.count);
  });
}

void CpuOps::add(Stream& stream, ConstView a, ConstView b, View y) const {
  HEARTH_CHECK(has_shape(a, y.rows, y.cols) && has_shape(b, y.rows, y.cols), "add: shapes");
  for_elements(host_stream(stream), {a, b, y}, [&](const Elements& e) {
    add_rows(a.row<float>(e.row) + e.col, b.row<float>(e.row) + e.col, y.row<float>(e.row) + e.col,
             e.count);
  });
}

void CpuOps::cast(Stream& stream, ConstView x, View y) const {
  HEARTH_CHECK(has_shape(x, y.rows, y.cols), "cast: shapes");
  for_elements(host_stream(stream), {x, y}, [&](const Elements& e) {
    convert(x.dtype, at(x, e.row, e.col), y.dtype, const_cast<std::byte*>(at(y, e.row, e.col)),
            e.count);
  });
}

}  // namespace hearth
