// How cross-entropy is cut into chunks, and its scratch.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/op_set.h"

namespace hearth {

/// Trained rows per chunk: about 64 MiB of logits, but enough rows that the products take longer
/// than reading the head's weight and gradient for each chunk.
inline int64_t loss_rows(int64_t vocabulary) {
  const int64_t rows = (int64_t{16} << 20) / std::max<int64_t>(1, vocabulary);
  return std::clamp<int64_t>(rows / 32 * 32, 256, 2048);
}

/// dx = dlogits W sums over the vocabulary in pieces of this size; each piece has its own tiles.
constexpr int64_t kLossDepth = 8192;
inline int64_t loss_pieces(int64_t vocabulary) {
  return (vocabulary + kLossDepth - 1) / kLossDepth;
}

ScratchNeed loss_scratch(int64_t tokens, int64_t hidden, int64_t vocabulary, int64_t rank);

}  // namespace hearth
