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

template <class T>
size_t bytes_of(int64_t n) {
  return align_up(sizeof(T) * static_cast<size_t>(n));
}

}  // namespace

int64_t ExpertChunks::piece_rows(int64_t width) {
  const int64_t rows = kChunkFloats / std::max<int64_t>(1, width);
  return std::max(ExpertBlock::kLargest, rows / ExpertBlock::kLargest * ExpertBlock::kLargest);
}

int64_t ExpertChunks::most_rows(int64_t rows, int64_t width) {
  return std::min(rows, piece_rows(width));
}

// A segment has one piece more than whole ones at most, and pieces are no shorter than blocks.
int64_t ExpertChunks::most_pieces(int64_t rows, int64_t segments) {
  return rows / ExpertBlock::kLargest + segments;
}

// Each piece has one block more than whole ones at most.
int64_t ExpertChunks::most_blocks(int64_t rows, int64_t segments) {
  return rows / ExpertBlock::kLargest + most_pieces(rows, segments);
}

size_t ExpertChunks::scratch_bytes(int64_t rows, int64_t segments) {
  return bytes_of<ExpertBlock>(most_blocks(rows, segments)) +
         bytes_of<ExpertPiece>(most_pieces(rows, segments)) + bytes_of<ExpertGroup>(segments) +
         kArenaAlignment;
}

ExpertChunks::ExpertChunks(Scratch& scratch, const ExpertRows& rows,
                           std::span<const ExpertView> experts, int64_t width, int64_t all_rows)
    : experts_(experts),
      offsets_(rows.offsets.as<int32_t>()),
      segments_(rows.segments),
      segment_count_(std::ssize(experts) * rows.segments),
      largest_(piece_rows(width)) {
  HEARTH_CHECK(rows.offsets.cols == segment_count_ + 1 && offsets_[0] >= 0 &&
                   offsets_[segment_count_] <= all_rows,
               "experts: offsets");
  const int64_t count = offsets_[segment_count_] - offsets_[0];
  most_ = most_rows(count, width);
  rows_ = {offsets_[0], 0};
  blocks_ = scratch.take<ExpertBlock>(most_blocks(count, segment_count_));
  pieces_ = scratch.take<ExpertPiece>(most_pieces(count, segment_count_));
  groups_ = scratch.take<ExpertGroup>(std::ssize(experts));
}

bool ExpertChunks::next() {
  rows_ = {rows_.begin + rows_.count, 0};
  count_ = piece_count_ = group_count_ = 0;
  for (; segment_ < segment_count_; ++segment_, piece_ = 0) {
    const int64_t begin = offsets_[segment_];
    HEARTH_CHECK(offsets_[segment_ + 1] >= begin, "experts: offsets");
    const Blocks cut(offsets_[segment_ + 1] - begin, largest_);
    for (; piece_ < cut.count(); ++piece_) {
      const int64_t length = cut.length(piece_);
      if (rows_.count > 0 && rows_.count + length > most_) {
        cut_blocks();
        return true;
      }
      add_piece({segment_ % segments_, {begin + cut.begin(piece_), length}});
    }
  }
  cut_blocks();
  return piece_count_ > 0;
}

void ExpertChunks::add_piece(const ExpertPiece& piece) {
  const int64_t expert = segment_ / segments_;
  if (group_count_ == 0 || groups_[group_count_ - 1].expert != expert) {
    groups_[group_count_++] = {expert, {pieces_ + piece_count_, 0}};
  }
  std::span<const ExpertPiece>& pieces = groups_[group_count_ - 1].pieces;
  pieces_[piece_count_++] = piece;
  pieces = {pieces.data(), pieces.size() + 1};
  rows_.count += piece.rows.count;
}

// Few rows in each of several segments are fewer, longer blocks together. Not where a row's bits
// depend on the block's other rows, or where each segment has its own dropout.
bool ExpertChunks::blocks_cross_segments(const ExpertView& expert) const {
  if (segments_ == 1) return false;  // pieces are the blocks' units, as if calls were apart
  return std::ranges::all_of(kExpertMaps, [&](const auto map) {
    const LinearView& w = expert.*map;
    return multiply_keeps_rows_apart(w.compute == Compute::bf16) &&
           !(w.low_rank && w.low_rank.dropout);
  });
}

void ExpertChunks::cut_blocks() {
  for (const ExpertGroup& group : groups()) {
    const int64_t expert = group.expert, group_begin = count_;
    const auto add = [&](int64_t segment, Range rows) {
      const Blocks cut(rows.count, ExpertBlock::kLargest);
      for (int64_t b = 0; b < cut.count(); ++b) {
        blocks_[count_++] = {
            expert, segment, {rows.begin + cut.begin(b), cut.length(b)}, group_begin, 0};
      }
    };
    if (blocks_cross_segments(experts_[static_cast<size_t>(expert)])) {
      const Range &first = group.pieces.front().rows, &last = group.pieces.back().rows;
      add(group.pieces.front().segment, {first.begin, last.begin + last.count - first.begin});
    } else {
      for (const ExpertPiece& piece : group.pieces) add(piece.segment, piece.rows);
    }
    for (int64_t i = group_begin; i < count_; ++i) blocks_[i].group_size = count_ - group_begin;
  }
}

ExpertTile::ExpertTile(std::span<const ExpertBlock> blocks, int64_t columns, int64_t tile)
    : block(block_of_tile(blocks, columns, tile)),
      column((tile - block.group_begin * columns) / block.group_size) {}

ScratchNeed expert_scratch(int64_t rows, int64_t segments, int64_t width, int64_t rank) {
  const auto chunk = static_cast<size_t>(ExpertChunks::most_rows(rows, width));
  const auto columns = static_cast<size_t>(Blocks(width).count());
  constexpr size_t kTile = sizeof(float) * ExpertBlock::kLargest * Blocks::kLargest;
  return {ExpertChunks::scratch_bytes(rows, segments) +
              chunk * (static_cast<size_t>(width) + columns) * sizeof(float) + 2 * kArenaAlignment +
              ExpertLowRank::scratch_bytes(static_cast<int64_t>(chunk), rank),
          std::max(weight_tile_scratch(), low_rank_tile_scratch(rank)) + kTile + kArenaAlignment};
}

}  // namespace hearth
