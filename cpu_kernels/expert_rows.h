// Cuts the rows of experts into chunks whose intermediate rows fit the scratch, and chunks into
// pieces and row blocks, which form tiles.
//
//   expert 4 .......................  expert 7 ......    experts of the call, in its order
//   segment 0 ...... segment 1 .....  segment 0, 1       ExpertRows: micro-batches of an expert
//   piece .... .... | piece ........  piece, piece       weight gradients sum over one at a time
//   block ... ... ... ... ... ......  block ...          the other products' rows
//
// The rows of a chunk are numbered in this order. In the views, those of a segment are neighbours.
// Pieces are cut by the rows of their segment alone. So an expert's gradients are the same sums
// whatever else the call has.
#pragma once

#include <array>
#include <span>

#include "cpu_kernels/weight_tiles.h"
#include "device/host_stream.h"
#include "ops/op_set.h"

namespace hearth {

/// Some rows of one segment of an expert: what one product of a weight gradient sums over.
struct ExpertPiece {
  int32_t segment;
  int32_t first;  // of its rows in the chunk
  Range rows;     // of the views
  Range at() const { return {first, rows.count}; }
};

/// Some rows of one expert. Blocks of one expert form a group.
struct ExpertBlock {
  /// Most rows of a block: enough to pay for packing the weights, few enough for many tiles.
  static constexpr int64_t kLargest = 512;
  int32_t expert;
  int32_t segment;            // of its first row
  int64_t row;                // of the views: its first row
  Range at;                   // in the chunk
  const ExpertPiece* pieces;  // the first that it has rows of, if they lie apart; else null
  int32_t group_begin;        // the group's first block, in the chunk
  int32_t group_size;
};

/// x, dy, or what the op makes of them, with a row for each of the experts' rows: in the views' order,
/// or through the index of ExpertRows, which must outlive this.
class ExpertInput {
 public:
  ExpertInput(ConstView view) : view_(view) {}  // NOLINT: implicit
  ExpertInput(ConstView view, const ExpertRows& rows)
      : view_(view), index_(rows.source ? &rows : nullptr) {}

  const ConstView& view() const { return view_; }
  bool indexed() const { return index_ != nullptr; }
  /// The same rows of another view.
  ExpertInput in(const ConstView& view) const {
    ExpertInput other = *this;
    other.view_ = view;
    return other;
  }
  /// Neighbouring rows of the views, of one segment if segments lie apart.
  Operand of(Range rows) const;

 private:
  ConstView view_;
  const ExpertRows* index_ = nullptr;
};

/// x or dy, rounded once in the scratch where several of a call's `rows` rows share one of x.
ExpertInput expert_input(HostStream& host, Scratch& scratch, const ExpertInput& x, int64_t rows);

/// Which rows of the views a block has, for products whose results lie in views.
class BlockRows {
 public:
  BlockRows(const ExpertBlock& block, const ExpertRows& all);
  int64_t operator[](int64_t r) const {
    return apart_ ? rows_[static_cast<size_t>(r)] : first_ + r;
  }
  int64_t count() const { return count_; }
  Operand of(const ExpertInput& x) const;
  /// Columns of these rows of a view, for a product to write: themselves, or, if they lie apart, in
  /// the scratch. Then `put` copies them to the view.
  View target(Scratch& scratch, const View& all, Range cols) const;
  void put(const View& made, const View& all, Range cols) const;

 private:
  using Numbers = std::array<int32_t, ExpertBlock::kLargest>;
  const bool apart_;
  const int64_t first_, count_;
  Numbers rows_, inputs_;  // if they lie apart: of the views, and of what the index reads
};

/// All pieces of one expert in a chunk.
struct ExpertGroup {
  int64_t expert;
  std::span<const ExpertPiece> pieces;
};

/// Walks the chunks. Its lists are in the given scratch.
class ExpertChunks {
 public:
  /// `all_rows`: of the views.
  ExpertChunks(Scratch& scratch, const ExpertRows& rows, std::span<const ExpertView> experts,
               int64_t width, int64_t all_rows);

  /// Moves to the next chunk; false after the last.
  bool next();

  /// All rows of the call, and their number.
  const ExpertRows& all() const { return all_; }
  int64_t all_count() const { return all_count_; }

  /// Rows of the chunk.
  int64_t count() const { return rows_; }
  std::span<const ExpertBlock> blocks() const {
    return {blocks_, static_cast<size_t>(block_count_)};
  }
  std::span<const ExpertGroup> groups() const {
    return {groups_, static_cast<size_t>(group_count_)};
  }

  /// Most rows of a piece, and of a chunk, with `width` floats per row.
  static int64_t piece_rows(int64_t width);
  static int64_t most_rows(int64_t rows, int64_t width);
  static size_t scratch_bytes(int64_t rows, int64_t segments);

 private:
  static int64_t most_pieces(int64_t rows, int64_t segments);
  static int64_t most_blocks(int64_t rows, int64_t segments);
  bool blocks_cross_segments(const ExpertGroup& group) const;
  void add_piece(Range rows);
  void add_blocks(const ExpertGroup& group, const ExpertPiece* first, Range at, bool apart);
  void cut_blocks();

  std::span<const ExpertView> experts_;
  const ExpertRows all_;
  int64_t all_rows_, all_count_ = 0, segment_count_, largest_, most_;
  int64_t segment_ = 0, piece_ = 0;  // position of the next piece; segments of all experts
  int64_t rows_ = 0;
  ExpertBlock* blocks_;
  ExpertPiece* pieces_;
  ExpertGroup* groups_;
  int64_t block_count_ = 0, piece_count_ = 0, group_count_ = 0;
};

/// Tile `tile` of blocks x `columns` column blocks. A group's tiles go column by column, so that
/// all row blocks of an expert, of all its segments, read the same piece of its weights in
/// succession.
struct ExpertTile {
  const ExpertBlock& block;
  int64_t column;
  ExpertTile(std::span<const ExpertBlock> blocks, int64_t columns, int64_t tile);
};

/// A matrix in the scratch.
template <class T>
View matrix(Scratch& scratch, int64_t rows, int64_t cols) {
  return {scratch.take<T>(rows * cols), dtype_of<T>(), rows, cols};
}

/// Scratch bound of the expert ops; `segments` of all experts.
ScratchNeed expert_scratch(int64_t rows, int64_t segments, int64_t hidden, int64_t width,
                           int64_t rank, Compute compute, int64_t inputs);

}  // namespace hearth
