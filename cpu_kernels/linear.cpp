#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/low_rank.h"
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

// [rows, rank] of the op's scratch, filled by f(worker's scratch, rows, where) a block of rows.
template <class F>
View low_rank_rows(HostStream& host, int64_t rows, int64_t rank, const F& f) {
  const View all(host.scratch().take<float>(rows * rank), DType::f32, rows, rank);
  const Blocks blocks(rows);
  host.pool().run(blocks.count(), [&](int64_t block, int worker) {
    const Range r = block_of(blocks, block);
    f(host.worker_scratch(worker), r, all.slice(r.begin, r.count));
  });
  return all;
}
View input_rows(HostStream& host, ConstView x, const LinearView& w) {
  return low_rank_rows(host, x.rows, w.low_rank.rank(), [&](Scratch& own, Range r, View u) {
    low_rank_input(own, x.slice(r.begin, r.count), w.low_rank.from_row(r.begin), w.compute, u);
  });
}
View output_rows(HostStream& host, ConstView dy, const LinearView& w) {
  return low_rank_rows(host, dy.rows, w.low_rank.rank(), [&](Scratch& own, Range r, View v) {
    low_rank_output(own, dy.slice(r.begin, r.count), w.low_rank, w.compute, v);
  });
}

// Tiles that share a block of the weight follow each other, so that it is read from memory once.
void linear_forward(Stream& stream, ConstView x, const LinearView& w, View y) {
  HostStream& host = host_stream(stream);
  Scratch::Frame frame(stream.scratch());
  const View u = w.low_rank ? input_rows(host, x, w) : View();
  const Blocks rows(x.rows), out(w.out());
  host.pool().run(rows.count() * out.count(), [&](int64_t tile, int worker) {
    const Range r = block_of(rows, tile % rows.count()), o = block_of(out, tile / rows.count());
    Scratch& own = host.worker_scratch(worker);
    const Tail tail = u ? low_rank_tail(u.slice(r.begin, r.count), w.low_rank, o) : Tail();
    forward_tile(own, x.slice(r.begin, r.count), w, o, columns(y.slice(r.begin, r.count), o), tail);
  });
}

void linear_dgrad(Stream& stream, ConstView dy, const LinearView& w, View dx, bool accumulate) {
  HostStream& host = host_stream(stream);
  Scratch::Frame frame(stream.scratch());
  const View v = w.low_rank ? output_rows(host, dy, w) : View();
  const Blocks rows(dy.rows), in(w.in());
  host.pool().run(rows.count() * in.count(), [&](int64_t tile, int worker) {
    const Range r = block_of(rows, tile % rows.count());
    const Range i = block_of(in, tile / rows.count());
    Scratch& own = host.worker_scratch(worker);
    const View to = columns(dx.slice(r.begin, r.count), i);
    const ConstView through = v ? v.slice(r.begin, r.count) : View();
    dgrad_tile(own, dy.slice(r.begin, r.count), w, i, to, accumulate,
               low_rank_gradient_tail(through, w.low_rank, i));
    add_dropped_gradient(own, through, w.low_rank.from_row(r.begin), w.compute, i, to);
  });
}

void linear_wgrad(Stream& stream, ConstView dy, ConstView x, const LinearView& w,
                  const LinearGradient& gradient) {
  HostStream& host = host_stream(stream);
  const Blocks out(dy.cols), in(x.cols);
  if (gradient.weight) {
    host.pool().run(out.count() * in.count(), [&](int64_t tile, int worker) {
      wgrad_tile(host.worker_scratch(worker), dy, x, w.compute, block_of(out, tile / in.count()),
                 block_of(in, tile % in.count()), gradient.weight);
    });
  }
  if (gradient.bias) bias_gradient_sums(host, dy, gradient.bias);
  if (!gradient.a && !gradient.b) return;

  Scratch::Frame frame(stream.scratch());
  const View v = output_rows(host, dy, w), u = input_rows(host, x, w);
  const int64_t a_tiles = gradient.a ? in.count() : 0, b_tiles = gradient.b ? out.count() : 0;
  host.pool().run(a_tiles + b_tiles, [&](int64_t tile, int worker) {
    Scratch& own = host.worker_scratch(worker);
    if (tile < a_tiles) {
      low_rank_a_tile(own, v, x, w.low_rank, w.compute, block_of(in, tile), gradient.a);
    } else {
      low_rank_b_tile(own, dy, u, w.compute, block_of(out, tile - a_tiles), gradient.b);
    }
  });
}

}  // namespace

void cpu::add_linear(OpTable& ops) {
  ops.linear_forward.add(CpuOps::kName, linear_forward);
  ops.linear_dgrad.add(CpuOps::kName, linear_dgrad);
  ops.linear_wgrad.add(CpuOps::kName, linear_wgrad);
}

}  // namespace hearth
