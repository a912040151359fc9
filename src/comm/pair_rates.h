// Measures the links between ranks: latency and rate of every ordered pair, alone and together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/world.h"

namespace hearth {

struct MeasuredPair {
  int32_t from = 0, to = 0;
  double latency_s = 0;    // of a message of a few bytes: half of there and back
  double bytes_per_s = 0;  // while no other pair sends
  double together = 0;     // while all pairs send, each as many bytes
};

/// About `seconds` in all, however many ranks there are and however slow links are, but for a few
/// small messages of each pair. `most_bytes`: of memory, at each rank.
struct PairBounds {
  double seconds = 5;
  size_t most_bytes = size_t{64} << 20;
};

/// All ranks of the world call it with equal bounds. Every rank gets all pairs, by sender, then
/// receiver. Raises PeerError.
std::vector<MeasuredPair> measure_pairs(World& world, const PairBounds& bounds);

}  // namespace hearth
