#include "gpu_kernels/ops/op_scratch.h"

#include <algorithm>

#include "gpu_kernels/kernels/router_rows.h"
#include "gpu_kernels/kernels/square_sums.h"
#include "gpu_kernels/kernels/token_rows.h"
#include "gpu_kernels/libraries/attention_libraries.h"
#include "gpu_kernels/libraries/grouped_libraries.h"
#include "gpu_kernels/libraries/product_libraries.h"
#include "gpu_kernels/ops/products.h"

namespace hearth::HEARTH_GPU {
namespace {

/// The scratch of `Products::take`.
size_t operand_bytes(int64_t rows, int64_t columns, size_t element) {
  return align_up(element * static_cast<size_t>(rows * operand_columns(columns))) + kArenaAlignment;
}

/// An upper bound of the scratch of a map's low-rank pair.
size_t low_rank_bytes(int64_t rows, int64_t in, int64_t rank) {
  if (rank == 0) return 0;
  return operand_bytes(rows, in, sizeof(float)) + 2 * operand_bytes(rows, rank, sizeof(float));
}

ScratchNeed linear_scratch(int64_t rows, int64_t out, int64_t in, int64_t rank) {
  return {operand_bytes(rows, out, sizeof(bf16)) + operand_bytes(rows, in, sizeof(bf16)) +
              low_rank_bytes(rows, in, rank) + most_scratch_bytes(product_libraries()) +
              kArenaAlignment,
          0};
}

ScratchNeed attention_scratch(const AttentionShape& shape, int64_t tokens, int64_t longest) {
  size_t bytes = sizeof(float) * static_cast<size_t>(tokens * shape.heads) + kArenaAlignment;
  if (is_rounded(shape)) {
    const int64_t keys = std::max(tokens, longest);
    bytes += 2 * operand_bytes(tokens, shape.heads * shape.head_dim, sizeof(uint16_t)) +
             2 * operand_bytes(keys, shape.kv_heads * shape.head_dim, sizeof(uint16_t)) +
             most_scratch_bytes(attention_libraries(), shape.heads, shape.kv_heads, shape.head_dim,
                                tokens, keys);
  }
  return {bytes, 0};
}

/// z; in bf16 x, dy, h and the gradients of gate and up as operands; in f32 h alone, and x or dy where
/// an index has their rows; h again where it is dropped; of pairs drop(x) and four [rows, rank]; a
/// library's workspace.
ScratchNeed experts_scratch(int64_t rows, int64_t segments, int64_t hidden, int64_t width,
                            int64_t rank, Compute, int64_t) {
  const auto tiles = static_cast<size_t>(GroupedRows::most_tiles(rows, segments));
  const size_t pairs = rank == 0 ? 0
                                 : operand_bytes(rows, hidden, sizeof(float)) +
                                       4 * operand_bytes(rows, rank, sizeof(float));
  return {align_up(tiles * sizeof(TilePlace)) + kArenaAlignment +
              2 * operand_bytes(rows, hidden, sizeof(bf16)) +
              operand_bytes(rows, width, sizeof(float)) +
              4 * operand_bytes(rows, width, sizeof(bf16)) + pairs +
              most_scratch_bytes(grouped_libraries(), segments),
          0};
}

ScratchNeed cross_entropy_scratch(int64_t tokens, int64_t hidden, int64_t vocabulary,
                                  int64_t rank) {
  const int64_t chunk = chunk_rows(tokens, vocabulary);
  const int64_t floats = chunk * (logits_stride(vocabulary) + 2 * hidden);
  const int64_t by_token = tokens * static_cast<int64_t>(sizeof(int32_t) + sizeof(double));
  return {sizeof(float) * static_cast<size_t>(floats) + static_cast<size_t>(by_token) +
              5 * kArenaAlignment + linear_scratch(chunk, vocabulary, hidden, rank).shared,
          0};
}

// The parts of a norm's weight gradient, and of what the router counts and sums over its experts.
ScratchNeed row_scratch(int64_t rows, int64_t width) {
  constexpr int64_t kMostExperts = 1024;
  const auto part = norm_part_rows(rows);
  const auto of_norm = sizeof(float) * static_cast<size_t>((rows + part - 1) / part * width);
  const auto of_experts = static_cast<size_t>(std::max(width, kMostExperts)) *
                          std::max(sizeof(int32_t) * static_cast<size_t>(kRouteChunks),
                                   2 * sizeof(double) * static_cast<size_t>(kSumParts));
  // Those of the experts are no more the more rows there are.
  return {std::max(of_norm, of_experts) + 2 * kArenaAlignment, 0};
}

ScratchNeed router_losses_scratch(int64_t /*layers*/, int64_t /*experts*/) { return {}; }

ScratchNeed sum_squares_scratch(int64_t views, int64_t elements) {
  const int64_t blocks = elements / kSquareBlock + views;
  return {align_up(static_cast<size_t>(blocks) * sizeof(double)) + kArenaAlignment, 0};
}

}  // namespace

bool is_rounded(const AttentionShape& shape) {
  return shape.compute == Compute::bf16 && shape.head_dim % 8 == 0 && shape.scale > 0;
}

/// Some 640 MiB of logits. A chunk reads and writes the gradient of the head's weight once, which takes
/// as long as the products of some 700 rows (bf16, H100), so chunks are not made smaller than their
/// share of memory demands.
int64_t chunk_rows(int64_t tokens, int64_t vocabulary) {
  const int64_t rows = (int64_t{160} << 20) / std::max<int64_t>(1, vocabulary);
  return std::min(tokens, std::clamp<int64_t>(rows / 128 * 128, 256, 4096));
}

int64_t logits_stride(int64_t vocabulary) { return (vocabulary + 3) / 4 * 4; }

void add_scratch(OpTable& ops) {
  ops.linear_scratch.add(linear_scratch);
  ops.attention_scratch.add(attention_scratch);
  ops.experts_scratch.add(experts_scratch);
  ops.cross_entropy_scratch.add(cross_entropy_scratch);
  ops.row_scratch.add(row_scratch);
  ops.router_losses_scratch.add(router_losses_scratch);
  ops.sum_squares_scratch.add(sum_squares_scratch);
}

}  // namespace hearth::HEARTH_GPU
