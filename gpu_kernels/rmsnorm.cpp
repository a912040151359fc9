#include "gpu_kernels/gpu_op_set.h"
#include "gpu_kernels/gpu_stream.h"
#include "gpu_kernels/products.h"
#include "gpu_kernels/token_rows.h"

namespace hearth::HEARTH_GPU {

void GpuOps::rmsnorm_forward(Stream& stream, ConstView x, ConstView weight, double eps, View y,
                             View rstd) const {
  HEARTH_CHECK(is_shaped(weight, 1, x.cols) && same_shape(y, x) && is_shaped(rstd, 1, x.rows),
               "rmsnorm_forward: shapes");
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

void GpuOps::rmsnorm_backward(Stream& stream, ConstView dy, ConstView x, ConstView weight,
                              ConstView rstd, View dx, View weight_gradient) const {
  HEARTH_CHECK(same_shape(dy, x) && is_shaped(weight, 1, x.cols) && is_shaped(rstd, 1, x.rows) &&
                   same_shape(dx, x) && absent_or_shaped(weight_gradient, 1, x.cols),
               "rmsnorm_backward: shapes");
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

}  // namespace hearth::HEARTH_GPU
