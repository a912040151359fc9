#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/tiles.h"
#include "cpu_kernels/vector_math.h"
#include "cpu_kernels/weight_tiles.h"

namespace hearth {
namespace {

HEARTH_CLONES void add_row(const float* from, float* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += from[i];
}

// Column sums of dy over blocks of rows, each block's sum formed before it is added.
void bias_gradient_sums(HostStream& host, ConstView dy, View gradient) {
  constexpr int64_t kColumns = 128;
  for_blocks(host, dy.cols, kColumns, [&](int64_t begin, int64_t end, int) {
    for (int64_t first = 0; first < dy.rows; first += kDepthBlock) {
      float sum[kColumns] = {};
      for (int64_t t = first; t < std::min(dy.rows, first + kDepthBlock); ++t) {
        add_row(dy.row<float>(t) + begin, sum, end - begin);
      }
      add_row(sum, gradient.as<float>() + begin, end - begin);
    }
  });
}

}  // namespace

// Tiles that share a block of the weight follow each other, so that it is read from memory once.
void CpuOps::linear_forward(Stream& stream, ConstView x, const LinearView& w, View y) const {
  HEARTH_CHECK(has_shape(x, y.rows, w.in()) && y.cols == w.out() &&
                   (!w.bias || has_shape(w.bias, 1, w.out())),
               "linear_forward: shapes");
  HostStream& host = host_stream(stream);
  const Blocks rows(x.rows), out(w.out());
  host.pool().run(rows.count() * out.count(), [&](int64_t tile, int worker) {
    const Range r = block_of(rows, tile % rows.count());
    forward_tile(host.worker_scratch(worker), x.slice(r.begin, r.count), w,
                 block_of(out, tile / rows.count()), y.slice(r.begin, r.count));
  });
}

void CpuOps::linear_dgrad(Stream& stream, ConstView dy, const LinearView& w, View dx,
                          bool accumulate) const {
  HEARTH_CHECK(has_shape(dy, dx.rows, w.out()) && dx.cols == w.in(), "linear_dgrad: shapes");
  HostStream& host = host_stream(stream);
  const Blocks rows(dy.rows), in(w.in());
  host.pool().run(rows.count() * in.count(), [&](int64_t tile, int worker) {
    const Range r = block_of(rows, tile % rows.count());
    const Range i = block_of(in, tile / rows.count());
    dgrad_tile(host.worker_scratch(worker), dy.slice(r.begin, r.count), w, i,
               columns(dx.slice(r.begin, r.count), i), accumulate);
  });
}

void CpuOps::linear_wgrad(Stream& stream, ConstView dy, ConstView x, Compute compute,
                          View weight_gradient, View bias_gradient) const {
  HEARTH_CHECK(dy.rows == x.rows &&
                   (!weight_gradient || has_shape(weight_gradient, dy.cols, x.cols)) &&
                   (!bias_gradient || has_shape(bias_gradient, 1, dy.cols)),
               "linear_wgrad: shapes");
  HostStream& host = host_stream(stream);
  if (weight_gradient) {
    const Blocks out(dy.cols), in(x.cols);
    host.pool().run(out.count() * in.count(), [&](int64_t tile, int worker) {
      wgrad_tile(host.worker_scratch(worker), dy, x, compute, block_of(out, tile / in.count()),
                 block_of(in, tile % in.count()), weight_gradient);
    });
  }
  if (bias_gradient) bias_gradient_sums(host, dy, bias_gradient);
}

}  // namespace hearth
