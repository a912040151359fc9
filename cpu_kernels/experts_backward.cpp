#include <algorithm>

#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/expert_rows.h"
#include "cpu_kernels/row_math.h"
#include "cpu_kernels/swiglu.h"
#include "cpu_kernels/tiles.h"
#include "cpu_kernels/vector_math.h"

namespace hearth {
namespace {

HEARTH_CLONES void scale_row(float scale, const float* from, float* to, int64_t n) {
  HEARTH_SAME_OR_APART
  for (int64_t i = 0; i < n; ++i) to[i] = scale * from[i];
}

// One backward pass: the operands, and what lives from phase to phase of a chunk.
struct Backward {
  HostStream& host;
  ConstView dy, row_weight, x;
  std::span<const ExpertView> experts;
  View gate, up, dx, drow_weight;
  std::span<const ExpertGradient> gradients;
  Blocks inner, outer;  // of the experts' width, of the hidden size
  float* h;             // row_weight * silu(gate) * up, the chunk's rows
  float* partial;       // [inner blocks, rows of the chunk]: sums of drow_weight

  const ExpertView& expert_of(const ExpertTile& tile) const {
    return experts[static_cast<size_t>(tile.block.expert)];
  }
  // The tile that this worker is likely to run next: its weights are on their way meanwhile.
  ExpertTile after(const ExpertChunks& chunk, int64_t columns, int64_t i) const {
    const int64_t tiles = std::ssize(chunk.blocks()) * columns;
    return {chunk.blocks(), columns, std::min(i + host.pool().workers(), tiles - 1)};
  }

  // With z = dy W_down: drow_weight = <z, h> in parts, dh = row_weight * z, and from it dgate and
  // dup, in place. h is kept with the row weight, for the gradient of W_down.
  void hidden_gradient(const ExpertChunks& chunk, int64_t i, int worker) const {
    const ExpertTile tile(chunk.blocks(), inner.count(), i);
    const Range rows = tile.block.rows, cols = block_of(inner, tile.column);
    Scratch& scratch = host.worker_scratch(worker);
    Scratch::Frame frame(scratch);
    const View z(scratch.take<float>(rows.count * cols.count), DType::f32, rows.count, cols.count);
    const ExpertTile next = after(chunk, inner.count(), i);
    const Operand coming = dgrad_weight(expert_of(next).down, block_of(inner, next.column));
    dgrad_tile(scratch, dy.slice(rows.begin, rows.count), expert_of(tile).down, cols, z, false,
               &coming);
    for (int64_t r = 0; r < rows.count; ++r) {
      const int64_t row = rows.begin + r, in_chunk = row - chunk.rows().begin;
      const float weight = row_weight.as<float>()[row];
      float* to = h + in_chunk * inner.size + cols.begin;
      scale_row(weight, z.row<float>(r), to, cols.count);
      swiglu_gradient(to, gate.row<float>(row) + cols.begin, up.row<float>(row) + cols.begin, to,
                      cols.count);
      partial[tile.column * chunk.rows().count + in_chunk] =
          static_cast<float>(dot(z.row<float>(r), to, cols.count));
      scale_row(weight, to, to, cols.count);
    }
  }

  // dx = dgate W_gate + dup W_up; the first column's tile also adds up drow_weight.
  void data_gradient(const ExpertChunks& chunk, int64_t i, int worker) const {
    const ExpertTile tile(chunk.blocks(), outer.count(), i);
    const Range rows = tile.block.rows, cols = block_of(outer, tile.column);
    const ExpertView& expert = expert_of(tile);
    const View target = columns(dx.slice(rows.begin, rows.count), cols);
    Scratch& scratch = host.worker_scratch(worker);
    const ExpertTile next = after(chunk, outer.count(), i);
    const Operand second = dgrad_weight(expert.up, cols);
    const Operand coming = dgrad_weight(expert_of(next).gate, block_of(outer, next.column));
    dgrad_tile(scratch, gate.slice(rows.begin, rows.count), expert.gate, cols, target, false,
               &second);
    dgrad_tile(scratch, up.slice(rows.begin, rows.count), expert.up, cols, target, true, &coming);
    if (tile.column > 0) return;
    for (int64_t row = rows.begin; row < rows.begin + rows.count; ++row) {
      double sum = 0;
      for (int64_t b = 0; b < inner.count(); ++b) {
        sum += partial[b * chunk.rows().count + row - chunk.rows().begin];
      }
      drow_weight.as<float>()[row] = static_cast<float>(sum);
    }
  }

  // One tile of one of an expert's three weight gradients.
  void weight_gradient(const ExpertChunks& chunk, int64_t i, int worker) const {
    const int64_t tiles = inner.count() * outer.count();
    const ExpertGroup& group = chunk.groups()[static_cast<size_t>(i / (3 * tiles))];
    const int64_t map = i / tiles % 3;
    const Range across = block_of(outer, i % tiles / inner.count());
    const Range along = block_of(inner, i % tiles % inner.count());
    const auto of = [&](const ConstView& v) { return v.slice(group.rows.begin, group.rows.count); };
    const ExpertView& expert = experts[static_cast<size_t>(group.expert)];
    const ExpertGradient& gradient = gradients[static_cast<size_t>(group.expert)];
    Scratch& scratch = host.worker_scratch(worker);
    if (map == 0 && gradient.gate) {
      wgrad_tile(scratch, of(gate), of(x), expert.gate.compute, along, across, gradient.gate);
    } else if (map == 1 && gradient.up) {
      wgrad_tile(scratch, of(up), of(x), expert.up.compute, along, across, gradient.up);
    } else if (map == 2 && gradient.down) {
      const ConstView rows(h + (group.rows.begin - chunk.rows().begin) * inner.size, DType::f32,
                           group.rows.count, inner.size);
      wgrad_tile(scratch, of(dy), rows, expert.down.compute, across, along, gradient.down);
    }
  }
};

}  // namespace

void CpuOps::experts_backward(Stream& stream, ConstView dy, ConstView row_weight, ConstView x,
                              ConstView offsets, std::span<const ExpertView> experts, View gate,
                              View up, View dx, View drow_weight,
                              std::span<const ExpertGradient> gradients) const {
  const int64_t width = gate.cols;
  HEARTH_CHECK(gate.rows == x.rows && has_shape(up, x.rows, width) &&
                   has_shape(dy, x.rows, x.cols) && has_shape(dx, x.rows, x.cols) &&
                   has_shape(row_weight, 1, x.rows) && has_shape(drow_weight, 1, x.rows) &&
                   gradients.size() == experts.size(),
               "experts_backward: shapes");
  HostStream& host = host_stream(stream);
  Scratch& scratch = stream.scratch();
  Scratch::Frame frame(scratch);
  ExpertChunks chunks(scratch, offsets, static_cast<int64_t>(experts.size()), width);
  const int64_t chunk_rows = ExpertChunks::most_rows(x.rows, width);
  const Blocks inner(width), outer(x.cols);
  const Backward pass{host,
                      dy,
                      row_weight,
                      x,
                      experts,
                      gate,
                      up,
                      dx,
                      drow_weight,
                      gradients,
                      inner,
                      outer,
                      scratch.take<float>(chunk_rows * width),
                      scratch.take<float>(chunk_rows * inner.count())};

  while (chunks.next()) {
    const int64_t blocks = std::ssize(chunks.blocks()), groups = std::ssize(chunks.groups());
    host.pool().run(blocks * inner.count(),
                    [&](int64_t tile, int worker) { pass.hidden_gradient(chunks, tile, worker); });
    // Neither reads what the other writes: one run, so that no worker waits in between.
    const int64_t data_tiles = blocks * outer.count();
    host.pool().run(data_tiles + groups * 3 * inner.count() * outer.count(),
                    [&](int64_t tile, int worker) {
                      if (tile < data_tiles) {
                        pass.data_gradient(chunks, tile, worker);
                      } else {
                        pass.weight_gradient(chunks, tile - data_tiles, worker);
                      }
                    });
  }
}

}  // namespace hearth
