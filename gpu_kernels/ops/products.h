// Products of linear maps over groups of rows, with their low-rank pairs: what a dense map and a
// layer's experts have in common. Enqueues kernels; takes memory from the stream's scratch, which
// the caller frames.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "gpu_kernels/gpu_stream.h"
#include "gpu_kernels/kernels/product_launches.h"
#include "gpu_kernels/kernels/product_rows.h"
#include "ops/view.h"

namespace hearth::HEARTH_GPU {

/// The map of each group. All are computed in one way.
using Maps = std::span<const LinearView* const>;

/// How the rows of activations fall to groups: all to one, or as device memory says.
struct GroupedRows {
  int64_t rows = 0;
  int32_t groups = 1;
  const int32_t* offsets = nullptr;
  const TilePlace* tiles = nullptr;
  int32_t tile_count = 0;

  static int64_t most_tiles(int64_t rows, int64_t groups) { return rows / kTileRows + groups; }
};

Stored stored_of(DType type);
Operand operand_of(const ConstView& view);
DropoutRule rule_of(const Dropout& dropout);
/// Columns of the rows that a rounded copy takes.
constexpr int64_t operand_columns(int64_t columns) { return (columns + 7) / 8 * 8; }

class Products {
 public:
  Products(GpuStream& stream, const GroupedRows& rows, Compute compute)
      : stream_(stream), rows_(rows), bf16_(compute == Compute::bf16) {}

  bool bf16() const { return bf16_; }
  Stored stored() const { return bf16_ ? Stored::bf16 : Stored::f32; }
  const GroupedRows& rows() const { return rows_; }
  RowGroups row_groups() const { return {rows_.offsets, rows_.groups}; }

  /// Uninitialised [rows, columns] in the type of operands.
  Operand take(int64_t columns);
  /// x as an operand: itself in f32, in bf16 a rounded copy.
  Operand operand(const ConstView& x);
  /// The dropouts of the maps' pairs in device memory, by group; null where nothing is dropped.
  const DropoutRule* dropouts(Maps maps);
  /// drop(x) as an operand; `plain`, which is x's, where no map drops.
  Operand dropped(const ConstView& x, Maps maps, const Operand& plain);

  /// scale * drop(x) A^T, from drop(x); scale * dy B. No data where no map has a pair.
  Operand low_rank_input(const Operand& kept, Maps maps);
  Operand low_rank_output(const Operand& dy, Maps maps);

  /// y = x W^T + u B^T, or y +=; u as of low_rank_input, it may have no data.
  void forward(const Operand& x, const Operand& u, Maps maps, const View& y, bool accumulate);
  /// dx = dy W + v A, or dx +=; v as of low_rank_output, it may have no data.
  void dgrad(const Operand& dy, const Operand& v, Maps maps, const View& dx, bool accumulate);
  /// dx = dy W + dy2 W2, of the second maps.
  void dgrad_of_two(const Operand& dy, Maps maps, const Operand& dy2, Maps maps2, const View& dx);
  /// dx += drop(v A).
  void add_low_rank_gradient(const Operand& v, Maps maps, const View& dx);
  /// gradient(group) += dy^T x, where there is one.
  void wgrad(const Operand& dy, const Operand& x, const std::function<View(int)>& gradient);

 private:
  using Fill = std::function<void(size_t, ProductGroup&)>;
  void run(Form form, ProductArgs args, const Fill& fill);
  bool run_by_library(Form form, ProductArgs& args, std::vector<ProductGroup>& groups);
  Operand low_rank(Form form, const Operand& from, Maps maps);
  void product(Form form, const Operand& from, const Operand& low_rank, Maps maps, const View& to,
               bool accumulate);

  GpuStream& stream_;
  GroupedRows rows_;
  bool bf16_;
};

bool has_pair(Maps maps);
bool has_dropout(Maps maps);

/// The scratch that `Products::take` takes, and that all of a map's pair takes at most.
size_t operand_bytes(int64_t rows, int64_t columns, size_t element);
size_t low_rank_bytes(int64_t rows, int64_t in, int64_t rank);

}  // namespace hearth::HEARTH_GPU
