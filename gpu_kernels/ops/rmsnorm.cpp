#include "gpu_kernels/gpu_stream.h"
#include "gpu_kernels/kernels/token_rows.h"
#include "gpu_kernels/ops/gpu_op_set.h"
#include "gpu_kernels/ops/products.h"

namespace hearth::HEARTH_GPU {
namespace {

void rmsnorm_forward(Stream& stream, ConstView x, ConstView weight, double eps, View y, View rstd) {
  NormArguments a;
  a.rows = x.rows;
  a.cols = x.cols;
  a.quads = in_quads({x, weight, y});
  a.eps = static_cast<float>(eps);
  a.x = matrix_of<float>(x);
  a.weight = operand_of(weight);
  a.y = matrix_of<float>(y);
  a.rstd = rstd.as<float>();
  rmsnorm_on(gpu_stream(stream).handle(), a);
}

void rmsnorm_backward(Stream& stream, ConstView dy, ConstView x, ConstView weight, ConstView rstd,
                      View dx, View weight_gradient) {
  GpuStream gpu = gpu_stream(stream);
  Scratch::Frame frame(gpu.scratch());
  NormArguments a;
  a.rows = x.rows;
  a.cols = x.cols;
  a.quads = in_quads({dy, x, weight, dx});
  a.x = matrix_of<float>(x);
  a.weight = operand_of(weight);
  a.rstd = const_cast<float*>(rstd.as<float>());
  a.dy = matrix_of<float>(dy);
  a.dx = matrix_of<float>(dx);
  if (weight_gradient) {  // first, because dx may be dy
    const int64_t part = norm_part_rows(x.rows);
    a.partial = gpu.scratch().take<float>((x.rows + part - 1) / part * x.cols);
    a.weight_gradient = weight_gradient.as<float>();
    rmsnorm_weight_gradient_on(gpu.handle(), a);
  }
  rmsnorm_gradient_on(gpu.handle(), a);
}

}  // namespace

void add_rmsnorm(OpTable& ops) {
  ops.rmsnorm_forward.add(GpuOps::kName, rmsnorm_forward);
  ops.rmsnorm_backward.add(GpuOps::kName, rmsnorm_backward);
}

}  // namespace hearth::HEARTH_GPU
