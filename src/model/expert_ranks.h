// Which rank of a group computes which routed experts (expert parallelism).
#pragma once

#include <cstdint>
#include <utility>

namespace hearth {

/// The ranks of a group share the routed experts of every layer: each computes its own experts, for the
/// tokens of all. One rank has all experts.
struct ExpertRanks {
  int32_t ranks = 1;     // of the group
  int32_t position = 0;  // of this rank in the group

  bool divided() const { return ranks > 1; }
  /// The experts [first, second) of the rank at a position, of `experts` in a layer. Their numbers
  /// differ by one at most.
  std::pair<int32_t, int32_t> of(int32_t at, int64_t experts) const {
    return {static_cast<int32_t>(at * experts / ranks),
            static_cast<int32_t>((at + 1) * experts / ranks)};
  }
  std::pair<int32_t, int32_t> own(int64_t experts) const { return of(position, experts); }
  /// The rank that computes an expert.
  int32_t position_of(int32_t expert, int64_t experts) const {
    return static_cast<int32_t>((int64_t{ranks} * (expert + 1) - 1) / experts);
  }
  /// The rows of the group's ranks are computed in rounds: in round r those of the rank r places
  /// behind this one in the ring. So every rank has one other rank's rows at a time, and in round 0
  /// its own.
  int32_t guest_of(int32_t round) const { return (position + round) % ranks; }
  /// The rank that computes this one's rows while this one computes those of `guest`.
  int32_t host_of(int32_t guest) const { return (2 * position - guest + ranks) % ranks; }
  friend bool operator==(const ExpertRanks&, const ExpertRanks&) = default;
};

}  // namespace hearth
