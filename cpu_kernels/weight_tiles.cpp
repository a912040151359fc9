#include "cpu_kernels/weight_tiles.h"

#include <algorithm>

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

Operand forward_weight(const LinearView& w, Range out) {
  return {w.weight.slice(out.begin, out.count), true};
}

Operand dgrad_weight(const LinearView& w, Range in) { return columns(w.weight, in); }

void forward_tile(Scratch& scratch, const Operand& x, const LinearView& w, Range out, View y,
                  const Tail& tail, const Operand* coming) {
  float* const to = y.as<float>();
  multiply(scratch, {w.compute == Compute::bf16, x, forward_weight(w, out), to, y.stride, false,
                     tail, coming});
  if (!w.bias) return;
  Scratch::Frame frame(scratch);
  float* bias = scratch.take<float>(out.count);
  load_row(w.bias.dtype, columns(w.bias, out).data, false, bias, out.count);
  for (int64_t r = 0; r < x.rows(); ++r) {
    for (int64_t i = 0; i < out.count; ++i) to[r * y.stride + i] += bias[i];
  }
}

void dgrad_tile(Scratch& scratch, const Operand& dy, const LinearView& w, Range in, View dx,
                bool accumulate, const Tail& tail, const Operand* coming) {
  multiply(scratch, {w.compute == Compute::bf16, dy, dgrad_weight(w, in), dx.as<float>(), dx.stride,
                     accumulate, tail, coming});
}

void wgrad_tile(Scratch& scratch, const Operand& dy, const Operand& x, Compute compute, Range out,
                Range in, View gradient) {
  multiply(scratch, compute == Compute::bf16, columns(dy, out).transpose(), columns(x, in),
           gradient.row<float>(out.begin) + in.begin, gradient.stride, true);
}

size_t weight_tile_scratch() {
  return std::max(multiply_scratch(), sizeof(float) * Blocks::kLargest) + kArenaAlignment;
}

}  // namespace hearth
