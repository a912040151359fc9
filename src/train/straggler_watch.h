// Notices a rank that is slower than the others for many steps.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "train/step_parts.h"

namespace hearth {

struct Straggler {
  int32_t rank = 0;
  std::string host;
  double factor = 0;  // its seconds of work, over the median of the others
  int64_t steps = 0;  // in which that was so
  /// One line for people.
  std::string text() const;
};

/// A step's work is its time without waiting for other ranks. Steps are taken together in pieces of
/// at least 8 steps and 1.25 s, of which each rank's median counts. A rank that needs a third more
/// than the median of the others in each of the last 4 pieces is a straggler. So a burst of other
/// work on its host, or a few large steps, is no alarm. A rank is named once; again only after a
/// piece in which it kept up.
class StragglerWatch {
 public:
  std::optional<Straggler> add(std::span<const RankStep> step);

 private:
  struct Piece {
    int64_t steps = 0;
    std::vector<double> work;  // by rank: the median
  };
  std::optional<Straggler> end_piece(std::span<const RankStep> step);

  std::vector<std::vector<double>> open_;  // by rank: the work of the steps of the piece in work
  double open_s_ = 0;
  std::deque<Piece> pieces_;  // the last, that have ended
  std::set<int32_t> named_;
};

}  // namespace hearth
