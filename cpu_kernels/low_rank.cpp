#include "cpu_kernels/low_rank.h"

#include <algorithm>

#include "ops/dropout.h"

namespace hearth {
namespace {

// An input after dropout is made a piece at a time.
constexpr int64_t kPieceRows = 512;
constexpr int64_t kPieceColumns = kDepthBlock;

bool in_bf16(Compute compute) { return compute == Compute::bf16; }

void scale_rows(float scale, const View& v) {
  for (int64_t r = 0; r < v.rows; ++r) {
    float* const x = v.row<float>(r);
    for (int64_t i = 0; i < v.cols; ++i) x[i] *= scale;
  }
}

// drop(x[rows, cols]) in `piece`.
View drop(const Operand& x, const Dropout& dropout, Range rows, Range cols, float* piece) {
  const View kept(piece, DType::f32, rows.count, cols.count);
  for (int64_t r = 0; r < rows.count; ++r) {
    drop_row(dropout, rows.begin + r, cols.begin, x.row<float>(rows.begin + r) + cols.begin,
             kept.row<float>(r), cols.count);
  }
  return kept;
}

// f(rows, columns, whether they are the first columns) for the pieces of an input.
template <class F>
void for_pieces(Range rows, Range cols, const F& f) {
  for (int64_t r = 0; r < rows.count; r += kPieceRows) {
    for (int64_t c = 0; c < cols.count; c += kPieceColumns) {
      f(Range{rows.begin + r, std::min(kPieceRows, rows.count - r)},
        Range{cols.begin + c, std::min(kPieceColumns, cols.count - c)}, c == 0);
    }
  }
}

}  // namespace

void low_rank_input(Scratch& scratch, const Operand& x, const LowRank& pair, Compute compute,
                    View u) {
  if (!pair.dropout) {
    multiply(scratch, in_bf16(compute), x, Operand(pair.a, true), u.as<float>(), u.stride, false);
  } else {
    Scratch::Frame frame(scratch);
    float* const piece = scratch.take<float>(kPieceRows * kPieceColumns);
    for_pieces({0, x.rows()}, {0, x.cols()}, [&](Range rows, Range cols, bool first) {
      multiply(scratch, in_bf16(compute), drop(x, pair.dropout, rows, cols, piece),
               Operand(columns(pair.a, cols), true), u.row<float>(rows.begin), u.stride, !first);
    });
  }
  scale_rows(static_cast<float>(pair.scale), u);
}

void low_rank_output(Scratch& scratch, const Operand& dy, const LowRank& pair, Compute compute,
                     View v) {
  multiply(scratch, in_bf16(compute), dy, pair.b, v.as<float>(), v.stride, false);
  scale_rows(static_cast<float>(pair.scale), v);
}

Tail low_rank_tail(ConstView u, const LowRank& pair, Range out) {
  if (!pair) return {};
  return {u, Operand(pair.b.slice(out.begin, out.count), true)};
}

Tail low_rank_gradient_tail(ConstView v, const LowRank& pair, Range in) {
  if (!pair || pair.dropout) return {};
  return {v, columns(pair.a, in)};
}

void add_dropped_gradient(Scratch& scratch, ConstView v, const LowRank& pair, Compute compute,
                          Range in, View dx) {
  if (!pair || !pair.dropout) return;
  Scratch::Frame frame(scratch);
  float* const piece = scratch.take<float>(kPieceRows * kPieceColumns);
  float* const kept = scratch.take<float>(kPieceColumns);
  for_pieces({0, v.rows}, in, [&](Range rows, Range cols, bool) {
    multiply(scratch, in_bf16(compute), v.slice(rows.begin, rows.count), columns(pair.a, cols),
             piece, cols.count, false);
    for (int64_t r = 0; r < rows.count; ++r) {
      float* const to = dx.row<float>(rows.begin + r) + (cols.begin - in.begin);
      drop_row(pair.dropout, rows.begin + r, cols.begin, piece + r * cols.count, kept, cols.count);
      for (int64_t i = 0; i < cols.count; ++i) to[i] += kept[i];
    }
  });
}

void low_rank_a_tile(Scratch& scratch, ConstView v, const Operand& x, const LowRank& pair,
                     Compute compute, Range in, View da) {
  if (!pair.dropout) {
    multiply(scratch, in_bf16(compute), Operand(v, true), columns(x, in), da.as<float>() + in.begin,
             da.stride, true);
    return;
  }
  Scratch::Frame frame(scratch);
  float* const piece = scratch.take<float>(kPieceRows * kPieceColumns);
  for_pieces({0, x.rows()}, in, [&](Range rows, Range cols, bool) {
    multiply(scratch, in_bf16(compute), Operand(v.slice(rows.begin, rows.count), true),
             drop(x, pair.dropout, rows, cols, piece), da.as<float>() + cols.begin, da.stride,
             true);
  });
}

// Formed as its transpose, which has few rows and reads dy where it stands.
void low_rank_b_tile(Scratch& scratch, const Operand& dy, ConstView u, Compute compute, Range out,
                     View db) {
  Scratch::Frame frame(scratch);
  float* const sums = scratch.take<float>(u.cols * out.count);
  multiply(scratch, in_bf16(compute), Operand(u, true), columns(dy, out), sums, out.count, false);
  for (int64_t o = 0; o < out.count; ++o) {
    float* const to = db.row<float>(out.begin + o);
    for (int64_t j = 0; j < u.cols; ++j) to[j] += sums[j * out.count + o];
  }
}

size_t low_rank_tile_scratch(int64_t rank) {
  if (rank == 0) return 0;
  const auto most = static_cast<size_t>(
      std::max(kPieceRows * kPieceColumns + kPieceColumns, rank * Blocks::kLargest));
  return most * sizeof(float) + 2 * kArenaAlignment + multiply_scratch();
}

}  // namespace hearth
