// Products of linear maps over groups of rows, with low-rank pairs, for dense maps and experts.
// Enqueues kernels. Takes memory from the stream's scratch; the caller holds the Scratch::Frame.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "gpu_kernels/gpu_stream.h"
#include "gpu_kernels/kernels/product_launches.h"
#include "gpu_kernels/kernels/product_rows.h"
#include "ops/op_table.h"

namespace hearth::HEARTH_GPU {

/// The map of each group. All maps have the same compute type.
using Maps = std::span<const LinearView* const>;

/// How the rows of activations are split into groups: one group, or by `offsets` in device memory.
/// `segments` neighbouring groups have one gradient, to which wgrad adds one after the other.
struct GroupedRows {
  int64_t rows = 0;
  int32_t groups = 1;
  int32_t segments = 1;
  const int32_t* offsets = nullptr;
  const TilePlace* tiles = nullptr;
  int32_t tile_count = 0;

  static int64_t most_tiles(int64_t rows, int64_t groups) { return rows / kTileRows + groups; }
};

/// Activations: a row for each of GroupedRows, or through an index in device memory (ExpertRows).
struct Activations {
  ConstView view;
  const int32_t* source = nullptr;
  int64_t choices = 1;

  Activations(const ConstView& rows) : view(rows) {}  // NOLINT: implicit
  Activations(const ConstView& rows, const ExpertRows& index)
      : view(rows),
        source(index.source ? index.source.as<int32_t>() : nullptr),
        choices(index.choices) {}
};

Stored stored_of(DType type);
Operand operand_of(const ConstView& view);
DropoutRule rule_of(const Dropout& dropout);
/// The padded number of columns of a rounded copy.
constexpr int64_t operand_columns(int64_t columns) { return (columns + 7) / 8 * 8; }

class Products {
 public:
  Products(GpuStream& stream, const GroupedRows& rows, Compute compute)
      : stream_(stream), rows_(rows), bf16_(compute == Compute::bf16) {}

  bool bf16() const { return bf16_; }
  Stored stored() const { return bf16_ ? Stored::bf16 : Stored::f32; }
  const GroupedRows& rows() const { return rows_; }
  RowGroups row_groups() const { return {rows_.offsets, rows_.groups}; }

  /// Takes an uninitialised [rows, columns] of the operands' type.
  Operand take(int64_t columns);
  /// x as an operand: x itself for f32, a rounded copy for bf16, and a copy where an index has its
  /// rows. An f32 copy goes to `reuse`, if that has data: an operand of as many columns.
  Operand operand(const Activations& x, const Operand& reuse = {});
  /// The dropouts of the maps' pairs in device memory, by group; null if no map has dropout.
  const DropoutRule* dropouts(Maps maps);
  /// drop(x) as an operand; `plain`, the operand of x, if no map has dropout.
  Operand dropped(const Activations& x, Maps maps, const Operand& plain);

  /// scale * drop(x) A^T (`kept` is drop(x)), and scale * dy B. No data if no map has a pair.
  Operand low_rank_input(const Operand& kept, Maps maps);
  Operand low_rank_output(const Operand& dy, Maps maps);

  /// y (+)= x W^T + u B^T; u is low_rank_input's result and may have no data.
  void forward(const Operand& x, const Operand& u, Maps maps, const View& y, bool accumulate);
  /// dx (+)= dy W + v A; v is low_rank_output's result and may have no data.
  void dgrad(const Operand& dy, const Operand& v, Maps maps, const View& dx, bool accumulate);
  /// dx = dy W + dy2 W2, with W of `maps` and W2 of `maps2`.
  void dgrad_of_two(const Operand& dy, Maps maps, const Operand& dy2, Maps maps2, const View& dx);
  /// dx += drop(v A).
  void add_low_rank_gradient(const Operand& v, Maps maps, const View& dx);
  /// gradient(group / segments) += dy^T x, if it is not empty.
  void wgrad(const Operand& dy, const Operand& x, const std::function<View(int)>& gradient);

 private:
  using Fill = std::function<void(size_t, ProductGroup&)>;
  void run(Form form, ProductArgs args, const Fill& fill);
  bool run_by_library(Form form, ProductArgs& args, std::vector<ProductGroup>& groups);
  Operand low_rank(Form form, const Operand& from, Maps maps);
  void prepare(const Activations& x, const DropoutRule* dropouts, const Operand& to);
  void product(Form form, const Operand& from, const Operand& low_rank, Maps maps, const View& to,
               bool accumulate);

  GpuStream& stream_;
  GroupedRows rows_;
  bool bf16_;
};

bool has_pair(Maps maps);
bool has_dropout(Maps maps);

}  // namespace hearth::HEARTH_GPU
