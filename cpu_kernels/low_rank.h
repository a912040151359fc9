// Tiles of a linear map's low-rank pair (LowRank in ops/view.h), on the calling worker. In products
// with only `rank` columns, the other side is cut like the map's own tiles.
#pragma once

#include "cpu_kernels/weight_tiles.h"

namespace hearth {

/// u [m, rank] = scale * drop(x) A^T; x holds the first m rows of the pair's input
/// (LowRank::from_row).
void low_rank_input(Scratch& scratch, const Operand& x, const LowRank& pair, Compute compute,
                    View u);
/// v [m, rank] = scale * dy B.
void low_rank_output(Scratch& scratch, const Operand& dy, const LowRank& pair, Compute compute,
                     View v);

/// What makes a map's product y[:, out] += u B[out]^T.
Tail low_rank_tail(ConstView u, const LowRank& pair, Range out);
/// What makes a map's product dx[:, in] += v A[:, in]; nothing with dropout, which comes between.
Tail low_rank_gradient_tail(ConstView v, const LowRank& pair, Range in);
/// With dropout, dx[:, in] += drop(v A[:, in]); dx holds only these columns. Else nothing.
void add_dropped_gradient(Scratch& scratch, ConstView v, const LowRank& pair, Compute compute,
                          Range in, View dx);

/// da[:, in] += v^T drop(x[:, in]) over any number of rows, in order.
void low_rank_a_tile(Scratch& scratch, ConstView v, const Operand& x, const LowRank& pair,
                     Compute compute, Range in, View da);
/// db[out] += dy[:, out]^T u.
void low_rank_b_tile(Scratch& scratch, const Operand& dy, ConstView u, Compute compute, Range out,
                     View db);

/// Upper bound of the worker scratch that any of these takes; 0 for rank 0.
size_t low_rank_tile_scratch(int64_t rank);

}  // namespace hearth
