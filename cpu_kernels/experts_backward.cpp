#include <algorithm>

#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/expert_low_rank.h"
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
  const ExpertLowRank& low_rank;

  const ExpertView& expert_of(const ExpertTile& tile) const {
    return experts[static_cast<size_t>(tile.block.expert)];
  }
  // The tile that this worker is likely to run next: its weights are on their way meanwhile.
  ExpertTile after(const ExpertChunks& chunk, int64_t columns, int64_t i) const {
    const int64_t tiles = std::ssize(chunk.blocks()) * columns;
    return {chunk.blocks(), columns, std::min(i + host.pool().workers(), tiles - 1)};
  }

  // h of the chunk's rows.
  View h_rows(const ExpertChunks& chunk, Range rows) const {
    return {h + (rows.begin - chunk.rows().begin) * inner.size, DType::f32, rows.count, inner.size};
  }
  // to += what the tile's map gives through its low-rank pair.
  void add_pair(Scratch& scratch, const ExpertChunks& chunk, int map, const ExpertTile& tile,
                Range cols, const View& to) const {
    const LinearView& w = expert_of(tile).*kExpertMaps[static_cast<size_t>(map)];
    if (!w.low_rank) return;
    const Range rows = tile.block.rows;
    add_low_rank_gradient(scratch, low_rank.output(chunk, map, tile.block.expert, rows),
                          w.low_rank.from_row(rows.begin), w.compute, cols, to);
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
    add_pair(scratch, chunk, 2, tile, cols, z);
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
    add_pair(scratch, chunk, 0, tile, cols, target);
    add_pair(scratch, chunk, 1, tile, cols, target);
    if (tile.column > 0) return;
    for (int64_t row = rows.begin; row < rows.begin + rows.count; ++row) {
      double sum = 0;
      for (int64_t b = 0; b < inner.count(); ++b) {
        sum += partial[b * chunk.rows().count + row - chunk.rows().begin];
      }
      drow_weight.as<float>()[row] = static_cast<float>(sum);
    }
  }

  // One tile of one of an expert's three weight gradients: a block of the outputs by one of the
  // inputs. Those of the first column and row make that of the low-rank pair's B and A, too.
  void weight_gradient(const ExpertChunks& chunk, int64_t i, int worker) const {
    const int64_t tiles = inner.count() * outer.count();
    const ExpertGroup& group = chunk.groups()[static_cast<size_t>(i / (3 * tiles))];
    const auto map = static_cast<int>(i / tiles % 3);
    const bool is_down = map == 2;
    const int64_t outer_block = i % tiles / inner.count(), inner_block = i % tiles % inner.count();
    const Range across = block_of(outer, outer_block), along = block_of(inner, inner_block);
    const Range out = is_down ? across : along, in = is_down ? along : across;
    const auto of = [&](const ConstView& v) { return v.slice(group.rows.begin, group.rows.count); };
    const ConstView d_out = of(is_down ? dy : map == 0 ? gate : up);
    const ConstView input = is_down ? h_rows(chunk, group.rows) : of(x);
    const auto m = static_cast<size_t>(map), e = static_cast<size_t>(group.expert);
    const LinearView& w = experts[e].*kExpertMaps[m];
    const LinearGradient& to = gradients[e].*kExpertGradients[m];
    Scratch& scratch = host.worker_scratch(worker);
    if (to.weight) wgrad_tile(scratch, d_out, input, w.compute, out, in, to.weight);
    if (to.a && out.begin == 0) {
      low_rank_a_tile(scratch, low_rank.output(chunk, map, group.expert, group.rows), input,
                      w.low_rank.from_row(group.rows.begin), w.compute, in, to.a);
    }
    if (to.b && in.begin == 0) {
      low_rank_b_tile(scratch, d_out, low_rank.input(chunk, map, group.expert, group.rows),
                      w.compute, out, to.b);
    }
  }
};

void experts_backward(Stream& stream, ConstView dy, ConstView row_weight, ConstView x,
                      ConstView offsets, std::span<const ExpertView> experts, View gate, View up,
                      View dx, View drow_weight, std::span<const ExpertGradient> gradients) {
  const int64_t width = gate.cols;
  HostStream& host = host_stream(stream);
  Scratch& scratch = stream.scratch();
  Scratch::Frame frame(scratch);
  ExpertChunks chunks(scratch, offsets, static_cast<int64_t>(experts.size()), width);
  const int64_t chunk_rows = ExpertChunks::most_rows(x.rows, width);
  const Blocks inner(width), outer(x.cols);
  const ExpertLowRank low_rank(host, scratch, experts, chunk_rows);
  using Product = ExpertLowRank::Product;
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
                      scratch.take<float>(chunk_rows * inner.count()),
                      low_rank};

  while (chunks.next()) {
    const int64_t blocks = std::ssize(chunks.blocks()), groups = std::ssize(chunks.groups());
    low_rank.make(chunks, std::array{Product{2, true, dy, false}, Product{0, false, x, false},
                                     Product{1, false, x, false}});
    host.pool().run(blocks * inner.count(),
                    [&](int64_t tile, int worker) { pass.hidden_gradient(chunks, tile, worker); });
    low_rank.make(chunks, std::array{Product{0, true, gate, false}, Product{1, true, up, false},
                                     Product{2, false, pass.h_rows(chunks, chunks.rows()), true}});
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

}  // namespace

void cpu::add_experts_backward(OpTable& ops) {
  ops.experts_backward.add(CpuOps::kName, experts_backward);
}

}  // namespace hearth
