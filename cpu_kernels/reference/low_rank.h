// The low-rank pair of a linear map, in the plainest way.
#pragma once

#include "base/stream.h"
#include "ops/view.h"

namespace hearth {

/// Rows of `cols` elements of the activations' type, from the stream's scratch.
View take_rows(Stream& stream, int64_t rows, int64_t cols, DType activations);
/// drop(x) as rows of their own; x itself where nothing is dropped.
ConstView dropped(Stream& stream, ConstView x, const Dropout& dropout);

/// scale * drop(x) A^T, and scale * dy B, both [M, rank].
View low_rank_input(Stream& stream, ConstView x, const LinearView& w);
View low_rank_output(Stream& stream, ConstView dy, const LinearView& w);

}  // namespace hearth
