// Cuts the rows of all experts into chunks whose intermediate rows fit the scratch. Each chunk is
// cut into row blocks, which form tiles.
#pragma once

#include <span>

#include "cpu_kernels/weight_tiles.h"
#include "ops/op_set.h"

namespace hearth {

/// Some rows of one expert. Blocks of one expert form a group.
struct ExpertBlock {
  /// Most rows of a block: enough to pay for packing the weights, few enough for many tiles.
  static constexpr int64_t kLargest = 512;
  int64_t expert;
  Range rows;
  int64_t group_begin;  // the group's first block, in the chunk
  int64_t group_size;
};

/// All rows of one expert in a chunk.
struct ExpertGroup {
  int64_t expert;
  Range rows;
};

/// Walks the chunks. Its lists are in the given scratch.
class ExpertChunks {
 public:
  ExpertChunks(Scratch& scratch, ConstView offsets, int64_t experts, int64_t width);

  /// Moves to the next chunk; false after the last.
  bool next();

  Range rows() const { return rows_; }
  std::span<const ExpertBlock> blocks() const { return {blocks_, static_cast<size_t>(count_)}; }
  std::span<const ExpertGroup> groups() const {
    return {groups_, static_cast<size_t>(group_count_)};
  }

  /// Most rows of a chunk with `width` floats per row.
  static int64_t most_rows(int64_t rows, int64_t width);
  static int64_t most_blocks(int64_t rows, int64_t experts);

 private:
  const int32_t* offsets_;
  int64_t experts_, most_;
  int64_t expert_ = 0, block_ = 0;  // position of the next block
  Range rows_;
  ExpertBlock* blocks_;
  ExpertGroup* groups_;
  int64_t count_ = 0, group_count_ = 0;
};

/// Tile `tile` of blocks x `columns` column blocks. A group's tiles go column by column, so that
/// all row blocks of an expert read the same piece of its weights in succession.
struct ExpertTile {
  const ExpertBlock& block;
  int64_t column;
  ExpertTile(std::span<const ExpertBlock> blocks, int64_t columns, int64_t tile);
};

/// Scratch bound of experts_forward and experts_backward.
ScratchNeed expert_scratch(int64_t rows, int64_t experts, int64_t width, int64_t rank);

}  // namespace hearth
