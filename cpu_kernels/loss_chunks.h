// How cross-entropy is cut, and the scratch that follows from it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/op_set.h"

namespace hearth {

/// Trained rows whose logits exist at once: about 64 MiB of them, but not so few that reading the
/// head's weight and its gradient for each chunk would take longer than the products.
inline int64_t loss_rows(int64_t vocabulary) {
  const int64_t rows = (int64_t{16} << 20) / std::max<int64_t>(1, vocabulary);
  return std::clamp<int64_t>(rows / 32 * 32, 256, 2048);
}

/// dx = dlogits W sums over the vocabulary, in pieces of this size that are tiles of their own.
constexpr int64_t kLossDepth = 8192;
inline int64_t loss_pieces(int64_t vocabulary) {
  return (vocabulary + kLossDepth - 1) / kLossDepth;
}

ScratchNeed loss_scratch(int64_t tokens, int64_t hidden, int64_t vocabulary, int64_t rank);

}  // namespace hearth
