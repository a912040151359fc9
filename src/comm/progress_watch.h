// Whether messages still move between ranks that give signs of life. Pure: the caller brings the time.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "comm/piece_counts.h"

namespace hearth {

/// The sender judges: another rank says with each of its beats which piece of this rank it waits for,
/// and this rank knows whether it has handed that piece to MPI. If it has, the piece does not arrive,
/// and neither rank sends or receives any other piece either, then the network between them is gone.
///
/// Time counts only between two beats, and at most two beats' time: whoever is stopped in between, this
/// rank or the other, moves nothing because of that.
class ProgressWatch {
 public:
  /// All times are steady seconds. 0: no beats, and no time counts.
  void set_beat(double beat_s) { beat_s_ = beat_s; }
  /// `rank` says with a beat that it waits. `is_sent`: this rank has handed the piece to MPI.
  /// `own_ended`: PieceCounts::ended of this rank. Returns for how long nothing has moved.
  double heard(int32_t rank, const PieceWait& wait, bool is_sent, int64_t own_ended, double now);

 private:
  struct Seen {
    int64_t arrived = 0, ended = 0, own_ended = 0;
    double at = 0, stalled_s = 0;
  };
  std::map<std::pair<int32_t, int64_t>, Seen> seen_;  // by rank and group
  double beat_s_ = 0;
};

}  // namespace hearth
