#include <algorithm>

#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/expert_low_rank.h"
#include "cpu_kernels/rounded_rows.h"
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

// The operands of a backward pass, or of one of its halves.
struct Operands {
  ExpertInput dy;
  ConstView row_weight;            // data half
  ExpertInput x;                   // weight half
  View gate, up;                   // the data half makes them their gradients
  View h = {};                     // row_weight * silu(gate) * up; empty: in the scratch
  View dx = {}, drow_weight = {};  // data half
  std::span<const ExpertGradient> gradients = {};  // weight half
};

// Some neighbouring rows of the views.
struct ViewRows {
  Range rows;
  Operand of(const ExpertInput& x) const { return x.of(rows); }
};

// One backward pass: the operands, and what lives from phase to phase of a chunk.
struct Backward {
  HostStream& host;
  std::span<const ExpertView> experts;
  Operands of;
  Blocks inner, outer;  // of the experts' width, of the hidden size
  View h;               // as Operands::h, the chunk's rows; in bf16 if rows are rounded once
  View dgate, dup;      // likewise, what gate and up become; else empty
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

  // h of rows that are neighbours, in the views and in the chunk.
  View h_rows(int64_t row, Range at) const {
    if (of.h) return of.h.slice(row, at.count);
    return h.slice(at.begin, at.count);
  }
  // The gradient of gate (map 0) or up at some rows of the views, which are `at` of the chunk.
  template <class Rows>
  Operand hidden_gradient_of(int map, const Rows& rows, Range at) const {
    const View& rounded = map == 0 ? dgate : dup;
    if (rounded) return rounded.slice(at.begin, at.count);
    return rows.of(map == 0 ? of.gate : of.up);
  }
  // to (+)= d_out times columns of the tile's map, and what its low-rank pair gives.
  void add_map(Scratch& scratch, int map, const ExpertTile& tile, const Operand& d_out, Range cols,
               const View& to, bool accumulate, const Operand* coming) const {
    const LinearView& w = expert_of(tile).*kExpertMaps[static_cast<size_t>(map)];
    const ConstView v = low_rank.output(map, tile.block.expert, tile.block.at);
    dgrad_tile(scratch, d_out, w, cols, to, accumulate, low_rank_gradient_tail(v, w.low_rank, cols),
               coming);
    add_dropped_gradient(scratch, v, w.low_rank.from_row(tile.block.row, tile.block.segment),
                         w.compute, cols, to);
  }

  // With z = dy W_down: drow_weight = <z, h> in parts, dh = row_weight * z, and from it dgate and
  // dup, in place. h is kept with the row weight, for the gradient of W_down.
  void hidden_gradient(const ExpertChunks& chunk, int64_t i, int worker) const {
    const ExpertTile tile(chunk.blocks(), inner.count(), i);
    const BlockRows rows(tile.block, chunk.all());
    const Range cols = block_of(inner, tile.column);
    Scratch& scratch = host.worker_scratch(worker);
    Scratch::Frame frame(scratch);
    const View z(scratch.take<float>(rows.count() * cols.count), DType::f32, rows.count(),
                 cols.count);
    const ExpertTile next = after(chunk, inner.count(), i);
    const Operand coming = dgrad_weight(expert_of(next).down, block_of(inner, next.column));
    add_map(scratch, 2, tile, rows.of(of.dy), cols, z, false, &coming);
    float* const unrounded = dgate ? scratch.take<float>(cols.count) : nullptr;
    for (int64_t r = 0; r < rows.count(); ++r) {
      const int64_t row = rows[r], in_chunk = tile.block.at.begin + r;
      const float weight = of.row_weight.as<float>()[row];
      float* const gate = of.gate.row<float>(row) + cols.begin;
      float* const up = of.up.row<float>(row) + cols.begin;
      float* const to =
          dgate ? unrounded : (of.h ? of.h.row<float>(row) : h.row<float>(in_chunk)) + cols.begin;
      scale_row(weight, z.row<float>(r), to, cols.count);
      swiglu_gradient(to, gate, up, to, cols.count);
      partial[tile.column * chunk.count() + in_chunk] =
          static_cast<float>(dot(z.row<float>(r), to, cols.count));
      scale_row(weight, to, to, cols.count);
      if (!dgate) continue;
      round_row(to, h.row<bf16>(in_chunk) + cols.begin, cols.count);
      round_row(gate, dgate.row<bf16>(in_chunk) + cols.begin, cols.count);
      round_row(up, dup.row<bf16>(in_chunk) + cols.begin, cols.count);
    }
  }

  // dx = dgate W_gate + dup W_up; the first column's tile also adds up drow_weight.
  void data_gradient(const ExpertChunks& chunk, int64_t i, int worker) const {
    const ExpertTile tile(chunk.blocks(), outer.count(), i);
    const BlockRows rows(tile.block, chunk.all());
    const Range cols = block_of(outer, tile.column);
    Scratch& scratch = host.worker_scratch(worker);
    Scratch::Frame frame(scratch);
    const View target = rows.target(scratch, of.dx, cols);
    const ExpertTile next = after(chunk, outer.count(), i);
    const Operand second = dgrad_weight(expert_of(tile).up, cols);
    const Operand coming = dgrad_weight(expert_of(next).gate, block_of(outer, next.column));
    const Range at = tile.block.at;
    add_map(scratch, 0, tile, hidden_gradient_of(0, rows, at), cols, target, false, &second);
    add_map(scratch, 1, tile, hidden_gradient_of(1, rows, at), cols, target, true, &coming);
    rows.put(target, of.dx, cols);
    if (tile.column > 0) return;
    for (int64_t r = 0; r < rows.count(); ++r) {
      double sum = 0;
      for (int64_t b = 0; b < inner.count(); ++b) {
        sum += partial[b * chunk.count() + tile.block.at.begin + r];
      }
      of.drow_weight.as<float>()[rows[r]] = static_cast<float>(sum);
    }
  }

  // One tile of one of an expert's three weight gradients: a block of the outputs by one of the
  // inputs. Those of the first column and row make that of the low-rank pair's B and A, too. The
  // pieces of the expert's rows are added in their order.
  void weight_gradient(const ExpertChunks& chunk, int64_t i, int worker) const {
    const int64_t tiles = inner.count() * outer.count();
    const ExpertGroup& group = chunk.groups()[static_cast<size_t>(i / (3 * tiles))];
    const auto map = static_cast<int>(i / tiles % 3);
    const bool is_down = map == 2;
    const int64_t outer_block = i % tiles / inner.count(), inner_block = i % tiles % inner.count();
    const Range across = block_of(outer, outer_block), along = block_of(inner, inner_block);
    const Range out = is_down ? across : along, in = is_down ? along : across;
    const auto m = static_cast<size_t>(map), e = static_cast<size_t>(group.expert);
    const LinearView& w = experts[e].*kExpertMaps[m];
    const LinearGradient& to = of.gradients[e].*kExpertGradients[m];
    Scratch& scratch = host.worker_scratch(worker);
    for (const ExpertPiece& piece : group.pieces) {
      const Range rows = piece.rows, at = piece.at();
      const Operand d_out = is_down ? of.dy.of(rows) : hidden_gradient_of(map, ViewRows{rows}, at);
      const Operand input = is_down ? Operand(h_rows(rows.begin, at)) : of.x.of(rows);
      if (to.weight) wgrad_tile(scratch, d_out, input, w.compute, out, in, to.weight);
      if (to.a && out.begin == 0) {
        low_rank_a_tile(scratch, low_rank.output(map, group.expert, at), input,
                        w.low_rank.from_row(rows.begin, piece.segment), w.compute, in, to.a);
      }
      if (to.b && in.begin == 0) {
        low_rank_b_tile(scratch, d_out, low_rank.input(map, group.expert, at), w.compute, out,
                        to.b);
      }
    }
  }
};

enum class Half { data, weights, both };

// A chunk of rows at a time, in two phases: what the hidden rows get, then all that follows.
void run_backward(Half half, Stream& stream, const ExpertRows& all,
                  std::span<const ExpertView> experts, Operands of) {
  const bool data = half != Half::weights, weights = half != Half::data;
  const int64_t width = of.gate.cols, rows = of.gate.rows;
  HostStream& host = host_stream(stream);
  Scratch& scratch = stream.scratch();
  Scratch::Frame frame(scratch);
  ExpertChunks chunks(scratch, all, experts, width, rows);
  const int64_t chunk_rows = ExpertChunks::most_rows(rows, width);
  const Blocks inner(width), outer(of.dy.view().cols);
  const ExpertLowRank low_rank(host, scratch, experts, chunk_rows);
  using Product = ExpertLowRank::Product;
  // Halves hand over f32.
  const bool rounded = round_all(experts), own_rounded = rounded && half == Half::both;
  if (rounded) of.dy = expert_input(host, scratch, of.dy, chunks.all_count());
  if (rounded && weights) of.x = expert_input(host, scratch, of.x, chunks.all_count());
  const auto rounded_matrix = [&] {
    return own_rounded ? matrix<bf16>(scratch, chunk_rows, width) : View();
  };
  const Backward pass{host,
                      experts,
                      of,
                      inner,
                      outer,
                      of.h          ? View()
                      : own_rounded ? rounded_matrix()
                                    : matrix<float>(scratch, chunk_rows, width),
                      rounded_matrix(),
                      rounded_matrix(),
                      data ? scratch.take<float>(chunk_rows * inner.count()) : nullptr,
                      low_rank};

  while (chunks.next()) {
    const int64_t blocks = std::ssize(chunks.blocks()), groups = std::ssize(chunks.groups());
    const int64_t data_tiles = data ? blocks * outer.count() : 0;
    const int64_t weight_tiles = weights ? groups * 3 * inner.count() * outer.count() : 0;
    const std::array before = {Product{2, true, of.dy}, Product{0, false, of.x},
                               Product{1, false, of.x}};
    low_rank.make(chunks, std::span(before).first(weights ? 3 : 1));
    if (data) {
      host.pool().run(blocks * inner.count(), [&](int64_t tile, int worker) {
        pass.hidden_gradient(chunks, tile, worker);
      });
    }
    const auto of_chunk = [&](const View& x) { return x.slice(0, chunks.count()); };
    const std::array then = {
        own_rounded ? Product{0, true, of_chunk(pass.dgate), true} : Product{0, true, of.gate},
        own_rounded ? Product{1, true, of_chunk(pass.dup), true} : Product{1, true, of.up},
        Product{2, false, of.h ? of.h : pass.h_rows(0, {0, chunks.count()}), !of.h}};
    low_rank.make(chunks, std::span(then).first(weights ? 3 : 2));
    // Neither reads what the other writes: one run, so that no worker waits in between.
    host.pool().run(data_tiles + weight_tiles, [&](int64_t tile, int worker) {
      if (tile < data_tiles) {
        pass.data_gradient(chunks, tile, worker);
      } else {
        pass.weight_gradient(chunks, tile - data_tiles, worker);
      }
    });
  }
}

void experts_backward(Stream& stream, ConstView dy, ConstView row_weight, ConstView x,
                      const ExpertRows& rows, std::span<const ExpertView> experts, View gate,
                      View up, View dx, View drow_weight,
                      std::span<const ExpertGradient> gradients) {
  run_backward(Half::both, stream, rows, experts,
               {.dy = {dy, rows},
                .row_weight = row_weight,
                .x = {x, rows},
                .gate = gate,
                .up = up,
                .dx = dx,
                .drow_weight = drow_weight,
                .gradients = gradients});
}

void experts_dgrad(Stream& stream, ConstView dy, ConstView row_weight, const ExpertRows& rows,
                   std::span<const ExpertView> experts, View gate, View up, View h, View dx,
                   View drow_weight) {
  run_backward(Half::data, stream, rows, experts,
               {.dy = {dy, rows},
                .row_weight = row_weight,
                .x = dy,  // not read
                .gate = gate,
                .up = up,
                .h = h,
                .dx = dx,
                .drow_weight = drow_weight});
}

// The weight half writes none of the views.
View unchanged(const ConstView& v) {
  return {const_cast<void*>(v.data), v.dtype, v.rows, v.cols, v.stride};
}

void experts_wgrad(Stream& stream, ConstView dy, ConstView x, const ExpertRows& rows,
                   std::span<const ExpertView> experts, ConstView dgate, ConstView dup, ConstView h,
                   std::span<const ExpertGradient> gradients) {
  run_backward(Half::weights, stream, rows, experts,
               {.dy = {dy, rows},
                .row_weight = {},
                .x = {x, rows},
                .gate = unchanged(dgate),
                .up = unchanged(dup),
                .h = unchanged(h),
                .gradients = gradients});
}

}  // namespace

void cpu::add_experts_backward(OpTable& ops) {
  ops.experts_backward.add(CpuOps::kName, experts_backward);
  ops.experts_dgrad.add(CpuOps::kName, experts_dgrad);
  ops.experts_wgrad.add(CpuOps::kName, experts_wgrad);
}

}  // namespace hearth
