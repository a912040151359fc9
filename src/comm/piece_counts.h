// How far the messages of this rank are: what it has handed to MPI, and what has ended.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "comm/peer_error.h"

namespace hearth {

/// This rank waits for the next piece of another one. Sent as it lies in memory.
struct PieceWait {
  int64_t group = 0;
  int64_t arrived = 0;  // pieces of that rank in this group so far
  int64_t ended = 0;  // pieces that this rank has sent or received so far, of all ranks and groups
  CommPoint at;       // the operation of the piece
};

/// Pieces by group and rank of the world. Between two ranks, the pieces of a group match in their
/// order, so counts say whether both ranks have handed a piece to MPI. Thread-safe.
class PieceCounts {
 public:
  // Of the thread that calls MPI.
  void sends(int64_t group, int32_t to);
  void expects(int64_t group, int32_t from, const CommPoint& at);
  void sent();
  void arrived(int64_t group, int32_t from);

  // Of who watches.
  int64_t ended() const;
  /// Whether this rank has handed more than `arrived` pieces to MPI.
  bool has_sent_more(int64_t group, int32_t to, int64_t arrived) const;
  /// What this rank waits for of that one, once for each group.
  std::vector<PieceWait> waits(int32_t from) const;

 private:
  struct Run {
    CommPoint at;
    int64_t end = 0;  // how many pieces have arrived when all of this operation have
  };
  struct Lane {
    int64_t sends = 0, expects = 0, arrived = 0;
    std::deque<Run> expected;  // operations with pieces that have not arrived
  };

  mutable std::mutex mutex_;
  std::map<std::pair<int64_t, int32_t>, Lane> lanes_;  // by group and rank
  int64_t ended_ = 0;
};

}  // namespace hearth
