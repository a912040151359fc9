#include "plan/loader/slot_ranking.h"

#include <algorithm>

namespace hearth {
namespace {

// Queues of a class: three of ranks, in which no score counts, then one for each cost.
constexpr size_t kRankQueues = 3;

}  // namespace

bool Victim::is_better_than(const Victim& other) const {
  if (rank != other.rank) return rank < other.rank;
  if (key != other.key) return key > other.key;
  if (score != other.score) return score < other.score;
  if (is_dirty != other.is_dirty) return other.is_dirty;
  return last_use < other.last_use;
}

SlotRanking::SlotRanking(size_t slots) : slots_(slots), queues_(slots, 0), uses_(slots, 1) {}

void SlotRanking::add_cost(size_t slot_class, double cost) {
  if (slot_class >= classes_.size()) classes_.resize(slot_class + 1);
  std::vector<double>& costs = classes_[slot_class].costs;
  const auto at = std::ranges::lower_bound(costs, cost);
  if (at == costs.end() || *at != cost) costs.insert(at, cost);
}

void SlotRanking::finish_costs() {
  size_t queues = 0;
  for (Costs& c : classes_) {
    c.begin = queues;
    queues += kRankQueues + c.costs.size();
  }
  queues_ = IndexedQueues<Key>(slots_, queues);
}

size_t SlotRanking::queue_of(size_t slot_class, const Victim& victim) const {
  const Costs& c = classes_[slot_class];
  switch (victim.rank) {
    case Victim::given_up: return c.begin;
    case Victim::asked_for: return c.begin + 1;
    default: break;
  }
  if (victim.score == 0) return c.begin + 2;
  const auto at = std::ranges::lower_bound(c.costs, victim.cost);
  return c.begin + kRankQueues + static_cast<size_t>(at - c.costs.begin());
}

SlotRanking::Key SlotRanking::key_of(const Victim& victim) {
  if (victim.rank != Victim::unasked) {  // the least urgent first
    const int64_t rank = victim.key.rank;
    return {uint64_t{LoadKey::kNoQueue} - victim.key.queue,
            static_cast<uint64_t>((int64_t{1} << 32) - rank), ~victim.key.order};
  }
  if (victim.score == 0) return {victim.is_dirty ? 1u : 0u, victim.last_use, 0};
  // The last use first. A small item that is newer than home may cost what a larger one does that is
  // not.
  return {~static_cast<uint64_t>(victim.next_use), victim.is_dirty ? 1u : 0u, victim.last_use};
}

void SlotRanking::rank(size_t slot_class, const Victim& victim) {
  remove(victim.slot);
  queues_.push(queue_of(slot_class, victim), victim.slot, key_of(victim));
  if (victim.rank == Victim::unasked && victim.score > 0) {
    uses_.push(0, victim.slot, victim.next_use);
  }
}

void SlotRanking::remove(SlotId slot) {
  queues_.erase(slot);
  uses_.erase(slot);
}

std::optional<SlotId> SlotRanking::expired(Position now) const {
  if (uses_.empty(0) || uses_.top_key(0) >= now) return {};
  return uses_.top(0);
}

void SlotRanking::best(size_t slot_class, std::vector<SlotId>& slots) const {
  slots.clear();
  const Costs& c = classes_[slot_class];
  for (size_t q = c.begin; q < c.begin + kRankQueues + c.costs.size(); ++q) {
    if (!queues_.empty(q)) slots.push_back(queues_.top(q));
  }
}

bool SlotRanking::is_ranked(SlotId slot) const { return queues_.queue_of(slot) >= 0; }

bool SlotRanking::is_ranked_as(size_t slot_class, const Victim& victim) const {
  return queues_.queue_of(victim.slot) == static_cast<int32_t>(queue_of(slot_class, victim)) &&
         queues_.key_of(victim.slot) == key_of(victim);
}

}  // namespace hearth
