#include "gpu_kernels/gpu_stream.h"
#include "gpu_kernels/kernels/elementwise_rows.h"
#include "gpu_kernels/ops/gpu_op_set.h"
#include "gpu_kernels/ops/products.h"

namespace hearth::HEARTH_GPU {
namespace {

/// Views of one shape as one long row, where all of them are contiguous.
template <class Arguments>
Arguments over(const ConstView& shape, std::initializer_list<ConstView> views) {
  Arguments a;
  bool flat = true;
  for (const ConstView& v : views) flat = flat && (!v || v.contiguous());
  a.rows = flat ? 1 : shape.rows;
  a.cols = flat ? shape.size() : shape.cols;
  a.quads = in_quads(views);
  return a;
}

void swiglu_forward(Stream& stream, ConstView gate, ConstView up, View h) {
  auto a = over<ElementwiseArguments>(gate, {gate, up, h});
  a.op = Elementwise::swiglu;
  a.a = matrix_of<float>(gate);
  a.b = matrix_of<float>(up);
  a.out = matrix_of<float>(h);
  elementwise_on(gpu_stream(stream).handle(), a);
}

void swiglu_backward(Stream& stream, ConstView dh, View gate, View up, View h) {
  auto a = over<ElementwiseArguments>(gate, {dh, gate, up, h});
  a.op = Elementwise::swiglu_gradient;
  a.a = matrix_of<float>(dh);
  a.gate = matrix_of<float>(gate);
  a.up = matrix_of<float>(up);
  a.out = matrix_of<float>(h);
  elementwise_on(gpu_stream(stream).handle(), a);
}

void clamp_forward(Stream& stream, ConstView x, double limit, View y) {
  auto a = over<ElementwiseArguments>(x, {x, y});
  a.op = Elementwise::clamp;
  a.a = matrix_of<float>(x);
  a.out = matrix_of<float>(y);
  a.limit = static_cast<float>(limit);
  elementwise_on(gpu_stream(stream).handle(), a);
}

void clamp_backward(Stream& stream, ConstView dy, ConstView x, double limit, View dx) {
  auto a = over<ElementwiseArguments>(x, {dy, x, dx});
  a.op = Elementwise::clamp_gradient;
  a.a = matrix_of<float>(dy);
  a.b = matrix_of<float>(x);
  a.out = matrix_of<float>(dx);
  a.limit = static_cast<float>(limit);
  elementwise_on(gpu_stream(stream).handle(), a);
}

void add(Stream& stream, ConstView x, ConstView b, View y) {
  auto a = over<ElementwiseArguments>(y, {x, b, y});
  a.op = Elementwise::add;
  a.a = matrix_of<float>(x);
  a.b = matrix_of<float>(b);
  a.out = matrix_of<float>(y);
  elementwise_on(gpu_stream(stream).handle(), a);
}

void cast(Stream& stream, ConstView x, View y) {
  auto a = over<CastArguments>(y, {x, y});
  a.from = operand_of(x);
  a.to = {y.raw(), y.stride};
  a.stored = stored_of(y.dtype);
  cast_on(gpu_stream(stream).handle(), a);
}

}  // namespace

void add_elementwise(OpTable& ops) {
  ops.swiglu_forward.add(GpuOps::kName, swiglu_forward);
  ops.swiglu_backward.add(GpuOps::kName, swiglu_backward);
  ops.clamp_forward.add(GpuOps::kName, clamp_forward);
  ops.clamp_backward.add(GpuOps::kName, clamp_backward);
  ops.add.add(GpuOps::kName, add);
  ops.cast.add(GpuOps::kName, cast);
}

}  // namespace hearth::HEARTH_GPU
