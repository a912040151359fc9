#include "cpu_kernels/expert_rows.h"

#include <algorithm>

#include "cpu_kernels/expert_low_rank.h"
#include "cpu_kernels/rounded_rows.h"

namespace hearth {
namespace {

// Floats of intermediate rows in a chunk: 64 MiB.
constexpr int64_t kChunkFloats = int64_t{16} << 20;
// Elements of rounded rows of x, or of dy: 64 MiB.
constexpr int64_t kMostRounded = int64_t{32} << 20;
// As many of the call's rows share one of x at least, where x is rounded once.
constexpr int64_t kLeastSharing = 2;

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
      all_(rows),
      all_rows_(all_rows),
      segment_count_(std::ssize(experts) * rows.segments),
      largest_(piece_rows(width)) {
  for (int64_t e = 0; e < std::ssize(experts); ++e) {
    for (int64_t s = 0; s < rows.segments; ++s) {
      const auto [begin, end] = rows.rows_of(e, s, all_rows);
      all_count_ += end - begin;
    }
  }
  most_ = most_rows(all_count_, width);
  blocks_ = scratch.take<ExpertBlock>(most_blocks(all_count_, segment_count_));
  pieces_ = scratch.take<ExpertPiece>(most_pieces(all_count_, segment_count_));
  groups_ = scratch.take<ExpertGroup>(std::ssize(experts));
}

bool ExpertChunks::next() {
  rows_ = block_count_ = piece_count_ = group_count_ = 0;
  for (; segment_ < segment_count_; ++segment_, piece_ = 0) {
    const auto [begin, end] =
        all_.rows_of(segment_ / all_.segments, segment_ % all_.segments, all_rows_);
    const Blocks cut(end - begin, largest_);
    for (; piece_ < cut.count(); ++piece_) {
      const int64_t length = cut.length(piece_);
      if (rows_ > 0 && rows_ + length > most_) {
        cut_blocks();
        return true;
      }
      add_piece({begin + cut.begin(piece_), length});
    }
  }
  cut_blocks();
  return piece_count_ > 0;
}

void ExpertChunks::add_piece(Range rows) {
  const int64_t expert = segment_ / all_.segments;
  if (group_count_ == 0 || groups_[group_count_ - 1].expert != expert) {
    groups_[group_count_++] = {expert, {pieces_ + piece_count_, 0}};
  }
  std::span<const ExpertPiece>& pieces = groups_[group_count_ - 1].pieces;
  pieces_[piece_count_++] = {static_cast<int32_t>(segment_ % all_.segments),
                             static_cast<int32_t>(rows_), rows};
  pieces = {pieces.data(), pieces.size() + 1};
  rows_ += rows.count;
}

// Few rows in each of several segments are fewer, longer blocks together. Not where each segment has
// its own dropout.
bool ExpertChunks::blocks_cross_segments(const ExpertGroup& group) const {
  if (all_.segments == 1) return false;  // pieces are the blocks' units, as if calls were apart
  const ExpertView& expert = experts_[static_cast<size_t>(group.expert)];
  return std::ranges::all_of(kExpertMaps, [&](const auto map) {
    const LinearView& w = expert.*map;
    return !(w.low_rank && w.low_rank.dropout);
  });
}

/// Of rows `at` of the chunk, which begin with piece `first` of the group.
void ExpertChunks::add_blocks(const ExpertGroup& group, const ExpertPiece* first, Range at,
                              bool apart) {
  const Blocks cut(at.count, ExpertBlock::kLargest);
  for (int64_t b = 0; b < cut.count(); ++b) {
    const Range some{at.begin + cut.begin(b), cut.length(b)};
    while (some.begin >= first->first + first->rows.count) ++first;
    const bool several = apart && some.begin + some.count > first->first + first->rows.count;
    blocks_[block_count_++] = {static_cast<int32_t>(group.expert),
                               first->segment,
                               first->rows.begin + some.begin - first->first,
                               some,
                               several ? first : nullptr,
                               0,
                               0};
  }
}

void ExpertChunks::cut_blocks() {
  for (const ExpertGroup& group : groups()) {
    const auto begin = static_cast<int32_t>(block_count_);
    const ExpertPiece &first = group.pieces.front(), &last = group.pieces.back();
    if (blocks_cross_segments(group)) {
      const Range at{first.first, last.first + last.rows.count - first.first};
      add_blocks(group, &first, at, all_.stride > 0);
    } else {
      for (const ExpertPiece& piece : group.pieces) add_blocks(group, &piece, piece.at(), false);
    }
    for (int64_t i = begin; i < block_count_; ++i) {
      blocks_[i].group_begin = begin;
      blocks_[i].group_size = static_cast<int32_t>(block_count_) - begin;
    }
  }
}

Operand ExpertInput::of(Range rows) const {
  if (!indexed()) return view_.slice(rows.begin, rows.count);
  const int64_t s = index_->stride > 0 ? rows.begin / index_->stride : 0;
  const int64_t first = s * index_->input_stride;
  const int32_t* const source = index_->source.row<int32_t>(s) + (rows.begin - s * index_->stride);
  return {view_.slice(first, view_.rows - first), RowIndex{source, index_->choices}, rows.count};
}

ExpertInput expert_input(HostStream& host, Scratch& scratch, const ExpertInput& x, int64_t rows) {
  const ConstView& view = x.view();
  if (kLeastSharing * view.rows > rows || view.rows * view.cols > kMostRounded) return x;
  return x.in(rounded_rows(host, scratch, view));
}

BlockRows::BlockRows(const ExpertBlock& block, const ExpertRows& all)
    : apart_(block.pieces != nullptr), first_(block.row), count_(block.at.count) {
  if (!apart_) return;
  int64_t r = 0;
  for (const ExpertPiece* piece = block.pieces; r < count_; ++piece) {
    const int64_t skipped = std::max<int64_t>(0, block.at.begin - piece->first);
    for (int64_t i = skipped; i < piece->rows.count && r < count_; ++i) {
      const int64_t row = piece->rows.begin + i;
      rows_[static_cast<size_t>(r)] = static_cast<int32_t>(row);
      inputs_[static_cast<size_t>(r++)] = static_cast<int32_t>(all.input_row(row));
    }
  }
}

Operand BlockRows::of(const ExpertInput& x) const {
  if (!apart_) return x.of({first_, count_});
  return {x.view(), RowIndex{(x.indexed() ? inputs_ : rows_).data(), 1}, count_};
}

View BlockRows::target(Scratch& scratch, const View& all, Range cols) const {
  if (!apart_) return columns(all.slice(first_, count_), cols);
  return {scratch.take<float>(count_ * cols.count), DType::f32, count_, cols.count};
}

void BlockRows::put(const View& made, const View& all, Range cols) const {
  if (!apart_) return;
  for (int64_t r = 0; r < count_; ++r) {
    std::copy_n(made.row<float>(r), cols.count, all.row<float>((*this)[r]) + cols.begin);
  }
}

ExpertTile::ExpertTile(std::span<const ExpertBlock> blocks, int64_t columns, int64_t tile)
    : block(block_of_tile(blocks, columns, tile)),
      column((tile - block.group_begin * columns) / block.group_size) {}

ScratchNeed expert_scratch(int64_t rows, int64_t segments, int64_t hidden, int64_t width,
                           int64_t rank, Compute compute, int64_t inputs) {
  const auto chunk = static_cast<size_t>(ExpertChunks::most_rows(rows, width));
  const auto columns = static_cast<size_t>(Blocks(width).count());
  constexpr size_t kTile = sizeof(float) * (ExpertBlock::kLargest + 1) * Blocks::kLargest;
  // Of a chunk h, or h and the gradients of gate and up in bf16; x and dy.
  const bool rounds = compute == Compute::bf16;
  const size_t hidden_rows =
      chunk * static_cast<size_t>(width) * (rounds ? 3 * sizeof(bf16) : sizeof(float));
  const int64_t shared = rounds && inputs < rows ? std::min(inputs, rows / kLeastSharing) : 0;
  const size_t x = bytes_of<bf16>(std::min(shared * hidden, kMostRounded));
  return {
      ExpertChunks::scratch_bytes(rows, segments) + 2 * x + hidden_rows +
          chunk * columns * sizeof(float) + 6 * kArenaAlignment +
          ExpertLowRank::scratch_bytes(static_cast<int64_t>(chunk), rank),
      std::max(weight_tile_scratch(), low_rank_tile_scratch(rank)) + kTile + 2 * kArenaAlignment};
}

}  // namespace hearth
