// Which rank of a group computes which routed experts (expert parallelism).
#pragma once

#include <cstdint>
#include <utility>

namespace hearth {

/// The ranks of a group share the routed experts of every layer: each computes its own experts, for the
/// tokens of all. One rank has all experts. Either every rank has tokens and experts, or the first
/// ranks have all tokens and the others all experts (zebra).
struct ExpertRanks {
  int32_t ranks = 1;            // of the group
  int32_t position = 0;         // of this rank in the group
  int32_t attention_ranks = 0;  // the first ranks, which have no experts; 0: all ranks have some

  bool divided() const { return ranks > 1; }
  /// Whether rows on their way out and back have streams of their own. Where every rank has tokens and
  /// experts, an exchange goes both ways anyway.
  bool ways_apart() const { return attention_ranks > 0; }
  bool has_tokens(int32_t at) const { return attention_ranks == 0 || at < attention_ranks; }
  bool has_experts(int32_t at) const { return at >= attention_ranks; }
  bool has_tokens() const { return has_tokens(position); }
  bool has_experts() const { return has_experts(position); }
  /// Whether this rank computes rows of another one.
  bool serves(int32_t guest) const {
    return guest != position && has_tokens(guest) && has_experts();
  }

  /// The experts [first, second) of the rank at a position, of `experts` in a layer. Their numbers
  /// differ by one at most among ranks that have experts.
  std::pair<int32_t, int32_t> of(int32_t at, int64_t experts) const {
    if (!has_experts(at)) return {0, 0};
    const int64_t sharing = ranks - attention_ranks, number = at - attention_ranks;
    return {static_cast<int32_t>(number * experts / sharing),
            static_cast<int32_t>((number + 1) * experts / sharing)};
  }
  std::pair<int32_t, int32_t> own(int64_t experts) const { return of(position, experts); }
  /// The rank that computes an expert.
  int32_t position_of(int32_t expert, int64_t experts) const {
    const int64_t sharing = ranks - attention_ranks;
    return attention_ranks + static_cast<int32_t>((sharing * (expert + 1) - 1) / experts);
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
