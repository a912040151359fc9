// The reference's low-rank pair of a linear map.
#pragma once

#include "base/stream.h"
#include "ops/view.h"

namespace hearth {

/// An uninitialised view [rows, cols] from the stream's scratch.
View take_rows(Stream& stream, int64_t rows, int64_t cols, DType activations);
/// drop(x) in new memory from the scratch; x itself if there is no dropout.
ConstView dropped(Stream& stream, ConstView x, const Dropout& dropout);

/// scale * drop(x) A^T, and scale * dy B, both [M, rank].
View low_rank_input(Stream& stream, ConstView x, const LinearView& w);
View low_rank_output(Stream& stream, ConstView dy, const LinearView& w);

}  // namespace hearth
