#include <cstring>

#include "base/dtype.h"
#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/elements.h"
#include "cpu_kernels/row_math.h"
#include "cpu_kernels/swiglu.h"
#include "cpu_kernels/vector_math.h"

namespace hearth {
namespace {

HEARTH_CLONES void add_rows(const float* a, const float* b, float* y, int64_t n) {
  HEARTH_SAME_OR_APART
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

HEARTH_CLONES void scale_row(const float* x, float factor, float* y, int64_t n) {
  HEARTH_SAME_OR_APART
  for (int64_t i = 0; i < n; ++i) y[i] = factor * x[i];
}

HEARTH_CLONES void clamp_row(const float* x, float limit, float* y, int64_t n) {
  HEARTH_SAME_OR_APART
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] < -limit ? -limit : x[i] > limit ? limit : x[i];
}

HEARTH_CLONES void clamp_gradient(const float* dy, const float* x, float limit, float* dx,
                                  int64_t n) {
  HEARTH_SAME_OR_APART
  for (int64_t i = 0; i < n; ++i) dx[i] = std::abs(x[i]) <= limit ? dy[i] : 0.0f;
}

const std::byte* at(const ConstView& v, int64_t row, int64_t col) {
  return static_cast<const std::byte*>(v.data) +
         static_cast<size_t>(row * v.stride + col) * size_of(v.dtype);
}

void swiglu_forward(Stream& stream, ConstView gate, ConstView up, View h) {
  for_elements(host_stream(stream), {gate, up, h}, [&](const Elements& e) {
    swiglu(gate.row<float>(e.row) + e.col, up.row<float>(e.row) + e.col,
           h.row<float>(e.row) + e.col, e.count);
  });
}

void swiglu_backward(Stream& stream, ConstView dh, View gate, View up, View h) {
  for_elements(host_stream(stream), {dh, gate, up, h}, [&](const Elements& e) {
    swiglu_gradient(dh.row<float>(e.row) + e.col, gate.row<float>(e.row) + e.col,
                    up.row<float>(e.row) + e.col, h.row<float>(e.row) + e.col, e.count);
  });
}

void sigmoid_gate_forward(Stream& stream, ConstView logits, ConstView x, View y) {
  for_blocks(host_stream(stream), x.rows, row_block(x.cols), [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      scale_row(x.row<float>(t), sigmoid(logits.as<float>()[t]), y.row<float>(t), x.cols);
    }
  });
}

void sigmoid_gate_backward(Stream& stream, ConstView dy, ConstView logits, ConstView y,
                           View dlogits, View dx) {
  for_blocks(host_stream(stream), y.rows, row_block(y.cols), [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      const float logit = logits.as<float>()[t], s = sigmoid(logit);
      const double sum = dot(dy.row<float>(t), y.row<float>(t), y.cols);
      dlogits.as<float>()[t] = static_cast<float>(sigmoid(-logit) * sum);  // 1 - s, not cancelled
      scale_row(dy.row<float>(t), s, dx.row<float>(t), y.cols);
    }
  });
}

void clamp_forward(Stream& stream, ConstView x, double limit, View y) {
  for_elements(host_stream(stream), {x, y}, [&](const Elements& e) {
    clamp_row(x.row<float>(e.row) + e.col, static_cast<float>(limit), y.row<float>(e.row) + e.col,
              e.count);
  });
}

void clamp_backward(Stream& stream, ConstView dy, ConstView x, double limit, View dx) {
  for_elements(host_stream(stream), {dy, x, dx}, [&](const Elements& e) {
    clamp_gradient(dy.row<float>(e.row) + e.col, x.row<float>(e.row) + e.col,
                   static_cast<float>(limit), dx.row<float>(e.row) + e.col, e.count);
  });
}

void add(Stream& stream, ConstView a, ConstView b, View y) {
  for_elements(host_stream(stream), {a, b, y}, [&](const Elements& e) {
    add_rows(a.row<float>(e.row) + e.col, b.row<float>(e.row) + e.col, y.row<float>(e.row) + e.col,
             e.count);
  });
}

void cast(Stream& stream, ConstView x, View y) {
  for_elements(host_stream(stream), {x, y}, [&](const Elements& e) {
    convert(x.dtype, at(x, e.row, e.col), y.dtype, const_cast<std::byte*>(at(y, e.row, e.col)),
            e.count);
  });
}

void clear(Stream& stream, View x) {
  for_elements(host_stream(stream), {x}, [&](const Elements& e) {
    std::memset(const_cast<std::byte*>(at(x, e.row, e.col)), 0,
                static_cast<size_t>(e.count) * size_of(x.dtype));
  });
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

void cpu::add_elementwise(OpTable& ops) {
  ops.swiglu_forward.add(CpuOps::kName, swiglu_forward);
  ops.swiglu_backward.add(CpuOps::kName, swiglu_backward);
  ops.sigmoid_gate_forward.add(CpuOps::kName, sigmoid_gate_forward);
  ops.sigmoid_gate_backward.add(CpuOps::kName, sigmoid_gate_backward);
  ops.clamp_forward.add(CpuOps::kName, clamp_forward);
  ops.clamp_backward.add(CpuOps::kName, clamp_backward);
  ops.add.add(CpuOps::kName, add);
  ops.cast.add(CpuOps::kName, cast);
  ops.clear.add(CpuOps::kName, clear);
}

}  // namespace hearth
