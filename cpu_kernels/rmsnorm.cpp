#include <cmath>

#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/packing.h"
#include "cpu_kernels/row_math.h"
#include "cpu_kernels/tiles.h"
#include "cpu_kernels/vector_math.h"

namespace hearth {
namespace {

// Blocks of rows whose sums make a partial weight gradient: at most kPartials of them.
constexpr int64_t kPartials = 256;
int64_t gradient_block(int64_t rows, int64_t width) {
  return std::max(row_block(width), (rows + kPartials - 1) / kPartials);
}

HEARTH_CLONES void scale_row(const float* x, float r, const float* weight, float* y, int64_t n) {
  HEARTH_SAME_OR_APART
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * r * weight[i];
}

HEARTH_CLONES void add_weight_gradient(const float* dy, const float* x, float r, float* sum,
                                       int64_t n) {
  HEARTH_SAME_OR_APART
  for (int64_t i = 0; i < n; ++i) sum[i] += dy[i] * (x[i] * r);
}

// dx = r * (dy * weight - x * r * mean), where dx may be dy.
HEARTH_CLONES void data_gradient(const float* dy, const float* x, const float* weight, float r,
                                 float mean, float* dx, int64_t n) {
  const float shift = r * mean;
  HEARTH_SAME_OR_APART
  for (int64_t i = 0; i < n; ++i) dx[i] = r * (dy[i] * weight[i] - x[i] * shift);
}

void rmsnorm_forward(Stream& stream, ConstView x, ConstView weight, double eps, View y, View rstd) {
  const int64_t n = x.cols;
  HostStream& host = host_stream(stream);
  for_blocks(host, x.rows, row_block(n), [&](int64_t begin, int64_t end, int worker) {
    Scratch::Frame frame(host.worker_scratch(worker));
    float* w = host.worker_scratch(worker).take<float>(n);
    load_row(weight.dtype, weight.data, false, w, n);
    for (int64_t t = begin; t < end; ++t) {
      const float* row = x.row<float>(t);
      const double mean = dot(row, row, n) / static_cast<double>(n);
      const auto r = static_cast<float>(1.0 / std::sqrt(mean + eps));
      rstd.as<float>()[t] = r;
      scale_row(row, r, w, y.row<float>(t), n);
    }
  });
}

void rmsnorm_backward(Stream& stream, ConstView dy, ConstView x, ConstView weight, ConstView rstd,
                      View dx, View weight_gradient) {
  const int64_t n = x.cols;
  HostStream& host = host_stream(stream);
  Scratch::Frame shared(stream.scratch());
  const int64_t block = gradient_block(x.rows, n);
  const int64_t blocks = (x.rows + block - 1) / block;
  float* partial = weight_gradient ? stream.scratch().take<float>(blocks * n) : nullptr;
  for_blocks(host, x.rows, block, [&](int64_t begin, int64_t end, int worker) {
    Scratch::Frame frame(host.worker_scratch(worker));
    float* w = host.worker_scratch(worker).take<float>(n);
    load_row(weight.dtype, weight.data, false, w, n);
    float* sum = partial ? partial + begin / block * n : nullptr;
    if (sum) std::fill_n(sum, n, 0.0f);
    for (int64_t t = begin; t < end; ++t) {
      const float *g = dy.row<float>(t), *row = x.row<float>(t);
      const float r = rstd.as<float>()[t];
      if (sum) add_weight_gradient(g, row, r, sum, n);  // first, because dx may be dy
      const double mean = dot3(g, w, row, n) * r / static_cast<double>(n);
      data_gradient(g, row, w, r, static_cast<float>(mean), dx.row<float>(t), n);
    }
  });
  if (weight_gradient) add_in_order(host, partial, blocks, n, weight_gradient.as<float>(), n);
}

}  // namespace

void cpu::add_rmsnorm(OpTable& ops) {
  ops.rmsnorm_forward.add(CpuOps::kName, rmsnorm_forward);
  ops.rmsnorm_backward.add(CpuOps::kName, rmsnorm_backward);
}

}  // namespace hearth
