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

// Either side can be the one that is transposed as it is packed; sums are the same to the bit. With
// many rows that is W, and y is written as it is to be. With few it is x, so that W, the larger,
// goes into the product as it stands: y^T = W x^T, and the small tile is transposed after.
void forward_tile(Scratch& scratch, ConstView x, const LinearView& w, Range out, View y) {
  constexpr int64_t kMany = 64;
  Scratch::Frame frame(scratch);
  const bool bf16 = w.compute == Compute::bf16;
  const ConstView weight = w.weight.slice(out.begin, out.count);
  float* bias = nullptr;
  if (w.bias) {
    bias = scratch.take<float>(out.count);
    load_row(w.bias.dtype, columns(w.bias, out).data, false, bias, out.count);
  }
  float* const to = y.as<float>() + out.begin;
  if (x.rows >= kMany) {
    multiply(scratch, bf16, x, Operand(weight, true), to, y.stride, false);
    for (int64_t r = 0; bias && r < x.rows; ++r) {
      for (int64_t i = 0; i < out.count; ++i) to[r * y.stride + i] += bias[i];
    }
  } else {
    float* transposed = scratch.take<float>(out.count * x.rows);
    multiply(scratch, bf16, weight, Operand(x, true), transposed, x.rows, false);
    transpose(transposed, x.rows, out.count, x.rows, bias, to, y.stride);
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
  constexpr size_t kTile = sizeof(float) * Blocks::kLargest * (Blocks::kLargest + 1);
  return multiply_scratch() + kTile + 2 * kArenaAlignment;
}

}  // namespace hearth
