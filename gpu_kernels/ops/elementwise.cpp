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

/// out from a and b, of one shape; b may be empty.
void compute(Stream& stream, Elementwise op, const ConstView& a, const ConstView& b,
             const View& out, double limit = 0) {
  auto arguments = over<ElementwiseArguments>(out, {a, b, out});
  arguments.op = op;
  arguments.a = matrix_of<float>(a);
  arguments.b = matrix_of<float>(b);
  arguments.out = matrix_of<float>(out);
  arguments.limit = static_cast<float>(limit);
  elementwise_on(gpu_stream(stream).handle(), arguments);
}

void swiglu_forward(Stream& stream, ConstView gate, ConstView up, View h) {
  compute(stream, Elementwise::swiglu, gate, up, h);
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
  compute(stream, Elementwise::clamp, x, {}, y, limit);
}

void clamp_backward(Stream& stream, ConstView dy, ConstView x, double limit, View dx) {
  compute(stream, Elementwise::clamp_gradient, dy, x, dx, limit);
}

void add(Stream& stream, ConstView x, ConstView b, View y) {
  compute(stream, Elementwise::add, x, b, y);
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
