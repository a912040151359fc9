#include "cpu_kernels/weight_tiles.h"

#include "cpu_kernels/packing.h"

namespace hearth {

ConstView columns(const ConstView& v, Range range) {
  const auto* from =
      static_cast<const std::byte*>(v.data) + static_cast<size_t>(range.begin) * size_of(v.dtype);
  return {from, v.dtype, v.rows, range.count, v.stride};
}

View columns(const View& v, Range range) {
  const ConstView c = columns(static_cast<const ConstView&>(v), range);
  return {const_cast<void*>(c.data), c.dtype, c.rows, c.cols, c.stride};
}

void forward_tile(Scratch& scratch, ConstView x, const LinearView& w, Range out, View y) {
  Scratch::Frame frame(scratch);
  const ConstView weight = w.weight.slice(out.begin, out.count);
  float* const to = y.as<float>() + out.begin;
  multiply(scratch, w.compute == Compute::bf16, x, Operand(weight, true), to, y.stride, false);
  if (!w.bias) return;
  float* bias = scratch.take<float>(out.count);
  load_row(w.bias.dtype, columns(w.bias, out).data, false, bias, out.count);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t i = 0; i < out.count; ++i) to[r * y.stride + i] += bias[i];
  }
}

void dgrad_tile(Scratch& scratch, ConstView dy, const LinearView& w, Range in, View dx,
                bool accumulate) {
  multiply(scratch, w.compute == Compute::bf16, dy, columns(w.weight, in), dx.as<float>(),
           dx.stride, accumulate);
}

void wgrad_tile(Scratch& scratch, ConstView dy, ConstView x, Compute compute, Range out, Range in,
                View gradient) {
  multiply(scratch, compute == Compute::bf16, Operand(columns(dy, out), true), columns(x, in),
           gradient.row<float>(out.begin) + in.begin, gradient.stride, true);
}

size_t weight_tile_scratch() {
  return multiply_scratch() + sizeof(float) * Blocks::kLargest + kArenaAlignment;
}

}  // namespace hearth
