#include "cpu_kernels/weight_tiles.h"

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

// Computed as y^T = W x^T: the rows of W then go into the product as they stand in memory, and
// only x, the smaller side for few rows, and the tile itself are transposed.
void forward_tile(Scratch& scratch, ConstView x, const LinearView& w, Range out, View y) {
  Scratch::Frame frame(scratch);
  float* bias = nullptr;
  if (w.bias) {
    bias = scratch.take<float>(out.count);
    load_row(w.bias.dtype, columns(w.bias, out).data, false, bias, out.count);
  }
  float* transposed = scratch.take<float>(out.count * x.rows);
  multiply(scratch, w.compute == Compute::bf16, w.weight.slice(out.begin, out.count),
           Operand(x, true), transposed, x.rows, false);
  transpose(transposed, x.rows, out.count, x.rows, bias, y.as<float>() + out.begin, y.stride);
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
  constexpr size_t kTile = sizeof(float) * Blocks::kLargest * (Blocks::kLargest + 1);
  return multiply_scratch() + kTile + 2 * kArenaAlignment;
}

}  // namespace hearth
