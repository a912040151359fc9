// The slots of a device in the order in which they would be taken from what they hold.
#pragma once

#include <optional>
#include <vector>

#include "plan/loader/indexed_queues.h"
#include "plan/loader/loader_types.h"

namespace hearth {

/// What taking a slot from its item means; the smallest is the cheapest. Slots of equal rank: the
/// least urgent item first, then the lowest score, and so on.
struct Victim {
  enum Rank : uint8_t {
    empty,
    given_up,   // its item leaves anyway
    unasked,    // nobody asked for its item
    asked_for,  // somebody did, less urgently
    held        // only the budget takes it, when the use has ended
  };

  Rank rank = empty;
  LoadKey key;       // of what was asked for
  double cost = 0;   // seconds to rebuild the copy
  double score = 0;  // cost per position until the next use; 0 if no use is known
  bool is_dirty = false;
  uint64_t last_use = 0;  // no two slots have the same
  Position next_use = kNever;
  SlotId slot = -1;

  bool is_better_than(const Victim& other) const;
};

/// Finds the best victim of a class without a look at each slot. Slots of equal cost keep their
/// order while positions rise, so there is a queue for each cost.
class SlotRanking {
 public:
  explicit SlotRanking(size_t slots);

  /// A cost that slots of a class can have. Before the first `rank`.
  void add_cost(size_t slot_class, double cost);
  void finish_costs();

  /// The slot of the victim is worth so much now.
  void rank(size_t slot_class, const Victim& victim);
  void remove(SlotId slot);
  /// A slot whose next use lies before `now`: it has to be ranked again.
  std::optional<SlotId> expired(Position now) const;
  /// The best slots of a class: of each rank, and of each cost. One of them is the best of all.
  void best(size_t slot_class, std::vector<SlotId>& slots) const;
  bool is_ranked_as(size_t slot_class, const Victim& victim) const;
  bool is_ranked(SlotId slot) const;

 private:
  struct Key {
    uint64_t first = 0, second = 0, third = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Costs {
    size_t begin = 0;  // the class's first queue
    std::vector<double> costs;
  };

  size_t queue_of(size_t slot_class, const Victim& victim) const;
  static Key key_of(const Victim& victim);

  size_t slots_;
  std::vector<Costs> classes_;
  IndexedQueues<Key> queues_;
  IndexedQueues<Position> uses_;  // slots with a known next use, by position
};

}  // namespace hearth
