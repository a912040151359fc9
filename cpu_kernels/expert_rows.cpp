#include "cpu_kernels/expert_rows.h"

#include <algorithm>

#include "cpu_kernels/expert_low_rank.h"

namespace hearth {
namespace {

// Floats of intermediate rows in a chunk: 64 MiB.
constexpr int64_t kChunkFloats = int64_t{16} << 20;

const ExpertBlock& block_of_tile(std::span<const ExpertBlock> blocks, int64_t columns,
                                 int64_t tile) {
  const ExpertBlock& any = blocks[static_cast<size_t>(tile / columns)];
  const int64_t in_group = tile - any.group_begin * columns;
  return blocks[static_cast<size_t>(any.group_begin + in_group % any.group_size)];
}

}  // namespace

int64_t ExpertChunks::most_rows(int64_t rows, int64_t width) {
  return std::min(rows,
                  std::max(ExpertBlock::kLargest, kChunkFloats / std::max<int64_t>(1, width)));
}

int64_t ExpertChunks::most_blocks(int64_t rows, int64_t experts) {
  return rows / ExpertBlock::kLargest + experts;
}

ExpertChunks::ExpertChunks(Scratch& scratch, ConstView offsets, int64_t experts, int64_t width)
    : offsets_(offsets.as<int32_t>()), experts_(experts) {
  HEARTH_CHECK(offsets.cols == experts + 1 && offsets_[0] == 0, "experts: offsets");
  const int64_t rows = offsets_[experts];
  most_ = most_rows(rows, width);
  blocks_ = scratch.take<ExpertBlock>(most_blocks(rows, experts));
  groups_ = scratch.take<ExpertGroup>(experts);
}

bool ExpertChunks::next() {
  rows_ = {rows_.begin + rows_.count, 0};
  count_ = group_count_ = 0;
  for (; expert_ < experts_; ++expert_, block_ = 0) {
    const int64_t begin = offsets_[expert_];
    HEARTH_CHECK(offsets_[expert_ + 1] >= begin, "experts: offsets");
    const Blocks cut(offsets_[expert_ + 1] - begin, ExpertBlock::kLargest);
    const int64_t group_begin = count_;
    bool full = false;
    for (; block_ < cut.count(); ++block_) {
      const int64_t length = cut.length(block_);
      full = rows_.count + length > most_ && rows_.count > 0;
      if (full) break;
      blocks_[count_++] = {expert_, {begin + cut.begin(block_), length}, group_begin, 0};
      rows_.count += length;
    }
    if (count_ > group_begin) {
      const ExpertBlock &first = blocks_[group_begin], &last = blocks_[count_ - 1];
      groups_[group_count_++] = {
          expert_, {first.rows.begin, last.rows.begin + last.rows.count - first.rows.begin}};
      for (int64_t i = group_begin; i < count_; ++i) blocks_[i].group_size = count_ - group_begin;
    }
    if (full) return true;
  }
  return count_ > 0;
}

ExpertTile::ExpertTile(std::span<const ExpertBlock> blocks, int64_t columns, int64_t tile)
    : block(block_of_tile(blocks, columns, tile)),
      column((tile - block.group_begin * columns) / block.group_size) {}

ScratchNeed expert_scratch(int64_t rows, int64_t experts, int64_t width, int64_t rank) {
  const auto blocks = static_cast<size_t>(ExpertChunks::most_blocks(rows, experts));
  const auto chunk = static_cast<size_t>(ExpertChunks::most_rows(rows, width));
  const auto columns = static_cast<size_t>(Blocks(width).count());
  constexpr size_t kTile = sizeof(float) * ExpertBlock::kLargest * Blocks::kLargest;
  return {blocks * sizeof(ExpertBlock) + static_cast<size_t>(experts) * sizeof(ExpertGroup) +
              chunk * (static_cast<size_t>(width) + columns) * sizeof(float) + 4 * kArenaAlignment +
              ExpertLowRank::scratch_bytes(static_cast<int64_t>(chunk), rank),
          std::max(weight_tile_scratch(), low_rank_tile_scratch(rank)) + kTile + kArenaAlignment};
}

}  // namespace hearth
