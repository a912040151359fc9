#include "gpu_kernels/gpu_op_set.h"
#include "gpu_kernels/product_choices.h"
#include "gpu_kernels/products.h"

namespace hearth::HEARTH_GPU {
namespace {

bool has_shape(const ConstView& v, int64_t rows, int64_t cols) {
  return v.rows == rows && v.cols == cols;
}
bool empty_or_shape(const ConstView& v, int64_t rows, int64_t cols) {
  return !v || has_shape(v, rows, cols);
}

bool fits(const LinearView& w) {
  const LowRank& p = w.low_rank;
  return empty_or_shape(w.bias, 1, w.out()) &&
         (!p || (has_shape(p.a, p.rank(), w.in()) && has_shape(p.b, w.out(), p.rank())));
}

}  // namespace

void GpuOps::linear_forward(Stream& stream, ConstView x, const LinearView& w, View y) const {
  HEARTH_CHECK(has_shape(x, y.rows, w.in()) && y.cols == w.out() && fits(w),
               "linear_forward: shapes");
  if (x.rows == 0) return;
  GpuStream gpu = gpu_stream(stream);
  Scratch::Frame frame(gpu.scratch());
  Products products(gpu, {.rows = x.rows}, w.compute);
  const LinearView* const map[] = {&w};
  const Operand a = products.operand(x);
  Operand u;
  if (w.low_rank) u = products.low_rank_input(products.dropped(x, map, a), map);
  if (w.bias) {
    fill_bias_on(gpu.handle(), operand_of(w.bias), y.as<float>(), y.stride, y.rows, y.cols);
  }
  products.forward(a, u, map, y, static_cast<bool>(w.bias));
}

// What goes through the pair is dropped after its product, so that it is one of its own.
void GpuOps::linear_dgrad(Stream& stream, ConstView dy, const LinearView& w, View dx,
                          bool accumulate) const {
  HEARTH_CHECK(has_shape(dy, dx.rows, w.out()) && dx.cols == w.in() && fits(w),
               "linear_dgrad: shapes");
  if (dy.rows == 0) return;
  GpuStream gpu = gpu_stream(stream);
  Scratch::Frame frame(gpu.scratch());
  Products products(gpu, {.rows = dy.rows}, w.compute);
  const LinearView* const map[] = {&w};
  const Operand a = products.operand(dy);
  const Operand v = products.low_rank_output(a, map);
  const bool drops = has_dropout(map);
  products.dgrad(a, drops ? Operand() : v, map, dx, accumulate);
  if (drops) products.add_low_rank_gradient(v, map, dx);
}

void GpuOps::linear_wgrad(Stream& stream, ConstView dy, ConstView x, const LinearView& w,
                          const LinearGradient& gradient) const {
  HEARTH_CHECK(dy.rows == x.rows && fits(w) && empty_or_shape(gradient.weight, dy.cols, x.cols) &&
                   empty_or_shape(gradient.bias, 1, dy.cols) &&
                   empty_or_shape(gradient.a, w.low_rank.rank(), x.cols) &&
                   empty_or_shape(gradient.b, dy.cols, w.low_rank.rank()),
               "linear_wgrad: shapes");
  if (x.rows == 0 || !gradient) return;
  GpuStream gpu = gpu_stream(stream);
  if (gradient.bias) {
    add_column_sums_on(gpu.handle(), dy.as<float>(), dy.stride, dy.rows, dy.cols,
                       gradient.bias.as<float>());
  }
  if (!gradient.weight && !gradient.a && !gradient.b) return;
  Scratch::Frame frame(gpu.scratch());
  Products products(gpu, {.rows = x.rows}, w.compute);
  const LinearView* const map[] = {&w};
  const Operand left = products.operand(dy), right = products.operand(x);
  if (gradient.weight) products.wgrad(left, right, [&](int) { return gradient.weight; });
  if (!gradient.a && !gradient.b) return;
  const Operand kept = products.dropped(x, map, right);
  if (gradient.a) {
    products.wgrad(products.low_rank_output(left, map), kept, [&](int) { return gradient.a; });
  }
  if (gradient.b) {
    products.wgrad(left, products.low_rank_input(kept, map), [&](int) { return gradient.b; });
  }
}

ScratchNeed GpuOps::linear_scratch(int64_t rows, int64_t out, int64_t in, int64_t rank) const {
  return {operand_bytes(rows, out, sizeof(bf16)) + operand_bytes(rows, in, sizeof(bf16)) +
              low_rank_bytes(rows, in, rank) + product_workspace_bytes() + kArenaAlignment,
          0};
}

}  // namespace hearth::HEARTH_GPU
