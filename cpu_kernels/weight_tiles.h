// Tiles of a linear map's three products, on the calling worker, for linear ops, experts and the
// loss.
#pragma once

#include "cpu_kernels/product.h"
#include "ops/view.h"

namespace hearth {

/// y[:, out] = x W[out]^T + b[out]; y holds only these columns. `tail` and `coming` as in
/// MatrixProduct.
void forward_tile(Scratch& scratch, const Operand& x, const LinearView& w, Range out, View y,
                  const Tail& tail = {}, const Operand* coming = nullptr);
/// The right operand of forward_tile.
Operand forward_weight(const LinearView& w, Range out);

/// dx[:, in] (+)= dy W[:, in]; dx holds only these columns.
void dgrad_tile(Scratch& scratch, const Operand& dy, const LinearView& w, Range in, View dx,
                bool accumulate, const Tail& tail = {}, const Operand* coming = nullptr);
/// The right operand of dgrad_tile.
Operand dgrad_weight(const LinearView& w, Range in);

/// gradient[out, in] += dy[:, out]^T x[:, in] over any number of rows, in order.
void wgrad_tile(Scratch& scratch, const Operand& dy, const Operand& x, Compute compute, Range out,
                Range in, View gradient);

/// Upper bound of the worker scratch that any of these takes.
size_t weight_tile_scratch();

/// Columns [begin, begin + count) of a view.
ConstView columns(const ConstView& v, Range range);
View columns(const View& v, Range range);
/// Columns, and rows, of an operand that is not transposed.
inline Operand columns(const Operand& x, Range range) {
  return x.block(0, x.rows(), range.begin, range.count);
}
inline Operand rows_of(const Operand& x, Range range) {
  return x.block(range.begin, range.count, 0, x.cols());
}

}  // namespace hearth
