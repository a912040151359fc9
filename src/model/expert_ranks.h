// Which rank of a group computes which routed experts (expert parallelism).
#pragma once

#include <cstdint>
#include <utility>

namespace hearth {

/// The ranks of a group share the routed experts of a layer: each computes its own experts, for the
/// tokens of all. One rank has all experts. Either every rank has tokens and experts, or the first
/// ranks have all tokens and the others all experts but those that have moved to the first (zebra).
struct ExpertRanks {
  int32_t ranks = 1;            // of the group
  int32_t position = 0;         // of this rank in the group
  int32_t attention_ranks = 0;  // the first ranks, which have all tokens; 0: all ranks have some
  int32_t moved = 0;  // experts of the layer that the attention ranks have, the first ones

  bool divided() const { return ranks > 1; }
  /// Whether rows on their way out and back have streams of their own. Where every rank has tokens and
  /// experts, an exchange goes both ways anyway.
  bool ways_apart() const { return attention_ranks > 0; }
  bool has_tokens(int32_t at) const { return attention_ranks == 0 || at < attention_ranks; }
  bool has_experts(int32_t at) const { return at >= attention_ranks || moved > 0; }
  bool has_tokens() const { return has_tokens(position); }
  bool has_experts() const { return has_experts(position); }
  /// Whether this rank computes rows of another one.
  bool serves(int32_t guest) const {
    return guest != position && has_tokens(guest) && has_experts();
  }

  /// The experts [first, second) of the rank at a position, of `experts` in a layer. Their numbers
  /// differ by one at most among the ranks of a role.
  std::pair<int32_t, int32_t> of(int32_t at, int64_t experts) const {
    const auto share = [](int64_t first, int64_t count, int64_t number, int64_t sharing) {
      return std::pair(static_cast<int32_t>(first + number * count / sharing),
                       static_cast<int32_t>(first + (number + 1) * count / sharing));
    };
    if (at < attention_ranks) return share(0, moved, at, attention_ranks);
    return share(moved, experts - moved, at - attention_ranks, ranks - attention_ranks);
  }
  std::pair<int32_t, int32_t> own(int64_t experts) const { return of(position, experts); }
  /// The rank that computes an expert.
  int32_t position_of(int32_t expert, int64_t experts) const {
    const auto number = [](int64_t of, int64_t count, int64_t sharing) {
      return static_cast<int32_t>((sharing * (of + 1) - 1) / count);
    };
    if (expert < moved) return number(expert, moved, attention_ranks);
    return attention_ranks + number(expert - moved, experts - moved, ranks - attention_ranks);
  }
  /// The rows of the group's ranks are computed in rounds: in round r those of the rank r places
  /// behind this one in the ring. So every rank has one other rank's rows at a time, and in round 0
  /// its own. The roles are interleaved in the ring, so ranks with experts alone compute at the same
  /// time: all in the same rounds, or each once in every few neighbouring rounds. If as many ranks
  /// have tokens as have experts alone, each role is a ring of its own, and in the later half of the
  /// rounds both serve each other: then no round without experts is between two with experts.
  int32_t guest_of(int32_t round) const { return at_place(plus(place_of(position), round)); }
  /// The round in which this rank computes the rows of `guest`.
  int32_t round_of(int32_t guest) const { return minus(place_of(guest), place_of(position)); }
  /// The rank that computes this one's rows while this one computes those of `guest`.
  int32_t host_of(int32_t guest) const {
    return at_place(minus(place_of(position), round_of(guest)));
  }
  friend bool operator==(const ExpertRanks&, const ExpertRanks&) = default;

 private:
  int32_t rings() const { return attention_ranks > 0 && 2 * attention_ranks == ranks ? 2 : 1; }
  int32_t places() const { return ranks / rings(); }  // of a ring
  /// Places are numbered ring by ring. A round is a way from one place to another, so many rings on
  /// and so many places on in the ring, and has the number of the place that lies so far from place 0.
  int32_t plus(int32_t place, int32_t round) const {
    const int32_t ring = (place / places() + round / places()) % rings();
    return ring * places() + (place + round) % places();
  }
  int32_t minus(int32_t place, int32_t other) const {
    const int32_t ring = (place / places() - other / places() + rings()) % rings();
    return ring * places() + (place - other + ranks) % places();
  }

  bool interleaves() const {
    return rings() == 1 && attention_ranks > 0 && attention_ranks < ranks;
  }
  /// Of the role with fewer ranks, or of attention, each rank is followed by its share of the others.
  bool attention_leads() const { return 2 * attention_ranks <= ranks; }
  int32_t leaders() const { return attention_leads() ? attention_ranks : ranks - attention_ranks; }

  /// The place of the rank at a position.
  int32_t place_of(int32_t at) const {
    if (!interleaves()) return at;
    const bool attends = at < attention_ranks;
    const int32_t number = attends ? at : at - attention_ranks, share = ranks / leaders();
    if (attends == attention_leads()) return number * share;
    return number + number / (share - 1) + 1;
  }
  /// The reverse.
  int32_t at_place(int32_t place) const {
    if (!interleaves()) return place;
    const int32_t share = ranks / leaders(), leader = place / share, follows = place % share;
    const int32_t number = follows == 0 ? leader : leader * (share - 1) + follows - 1;
    return (follows == 0) == attention_leads() ? number : attention_ranks + number;
  }
};

}  // namespace hearth
