#include "gpu_kernels/libraries/product_libraries.h"
#include "gpu_kernels/ops/gpu_op_set.h"
#include "gpu_kernels/ops/products.h"

namespace hearth::HEARTH_GPU {
namespace {}  // namespace

void linear_forward(Stream& stream, ConstView x, const LinearView& w, View y) {
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
void linear_dgrad(Stream& stream, ConstView dy, const LinearView& w, View dx, bool accumulate) {
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

void linear_wgrad(Stream& stream, ConstView dy, ConstView x, const LinearView& w,
                  const LinearGradient& gradient) {
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

void add_linear(OpTable& ops) {
  ops.linear_forward.add(GpuOps::kName, linear_forward);
  ops.linear_dgrad.add(GpuOps::kName, linear_dgrad);
  ops.linear_wgrad.add(GpuOps::kName, linear_wgrad);
}

}  // namespace hearth::HEARTH_GPU
