// Bounds of what the ops take from the stream's scratch.
#include <algorithm>

#include "cpu_kernels/attention_tiles.h"
#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/expert_rows.h"
#include "cpu_kernels/loss_chunks.h"
#include "cpu_kernels/low_rank.h"
#include "cpu_kernels/weight_tiles.h"

namespace hearth {
namespace {

template <class T>
size_t bytes_of(int64_t n) {
  return align_up(sizeof(T) * static_cast<size_t>(n)) + kArenaAlignment;
}

ScratchNeed linear_scratch(int64_t rows, int64_t, int64_t, int64_t rank) {
  return {rank > 0 ? 2 * bytes_of<float>(rows * rank) : 0,
          std::max(weight_tile_scratch(), low_rank_tile_scratch(rank))};
}

ScratchNeed experts_scratch(int64_t rows, int64_t segments, int64_t hidden, int64_t width,
                            int64_t rank, Compute compute, int64_t inputs) {
  return expert_scratch(rows, segments, hidden, width, rank, compute, inputs);
}

ScratchNeed attention_scratch(const AttentionShape& shape, int64_t tokens, int64_t longest) {
  const bool shared_keys = shape.heads > shape.kv_heads;  // dk and dv by head of the queries
  const size_t by_head = bytes_of<float>(std::max(tokens, longest) * shape.heads * shape.head_dim);
  return {shared_keys ? 2 * by_head : 0, attention_tile_scratch(shape)};
}

ScratchNeed cross_entropy_scratch(int64_t tokens, int64_t hidden, int64_t vocabulary,
                                  int64_t rank) {
  return loss_scratch(tokens, hidden, vocabulary, rank);
}

/// Shared: the partial sums of a norm's weight gradient; per worker: one row.
ScratchNeed row_scratch(int64_t rows, int64_t width) {
  return {bytes_of<float>(std::min<int64_t>(rows, 257) * width), bytes_of<float>(width)};
}

}  // namespace

void cpu::add_scratch_needs(OpTable& ops) {
  ops.linear_scratch.add(linear_scratch);
  ops.experts_scratch.add(experts_scratch);
  ops.attention_scratch.add(attention_scratch);
  ops.cross_entropy_scratch.add(cross_entropy_scratch);
  ops.row_scratch.add(row_scratch);
}

}  // namespace hearth
