// Who has which slot: claims, eviction, a shrinking budget.
#include <algorithm>
#include <stdexcept>

#include "plan/loader/loader.h"

namespace hearth {

// Something about an item or its slot has changed: claims may succeed that were refused.
void Loader::touch(const Entry& e) {
  classes_[static_cast<size_t>(e.slot_class)].refused = {};
  if (e.slot >= 0) rank(e.slot);
}

void Loader::rank(SlotId slot) {
  const std::optional<Victim> victim = victim_in(slot, nullptr);
  if (!victim || victim->rank == Victim::empty || victim->rank == Victim::held) {
    ranking_.remove(slot);
  } else {
    ranking_.rank(static_cast<size_t>(entry(slot_at(slot).item).slot_class), *victim);
  }
}

void Loader::advance(Position now) {
  now_ = std::max(now_, now);
  while (const std::optional<SlotId> slot = ranking_.expired(now_)) rank(*slot);
}

void Loader::unblock_all() {
  for (ClassEntry& c : classes_) c.refused = {};
}

// What it would take to have a copy again, and to get rid of it.
double Loader::rebuild_seconds(size_t bytes, bool is_zero, bool is_dirty) const {
  const auto amount = static_cast<double>(bytes);
  double seconds = 0;
  if (!is_zero || is_dirty) seconds += amount / settings_.in_bytes_per_s;
  if (is_dirty) seconds += amount / settings_.out_bytes_per_s;
  return seconds;
}

/// What taking the slot would cost; nothing if it cannot be taken. `claimed_by`: the key of the
/// load that asks; null: the budget, which takes everything.
std::optional<Victim> Loader::victim_in(SlotId id, const LoadKey* claimed_by) const {
  const SlotEntry& slot = slot_at(id);
  if (slot.is_closing || slot.is_closed) return {};
  Victim victim;
  victim.slot = id;
  if (slot.item < 0) return victim;
  const Entry& e = entry(slot.item);
  if (slot.claimant >= 0) {  // the slot was given up for another load
    if (claimed_by && key_of(slot.claimant) < *claimed_by) return {};
    victim.rank = Victim::given_up;
    victim.key = key_of(slot.claimant);
    return victim;
  }
  if (e.state == State::cancelling || (e.state == State::leaving && e.leave)) {
    victim.rank = Victim::given_up;
    return victim;
  }
  if (e.pins > 0) {
    if (claimed_by) return {};
    victim.rank = Victim::held;
    victim.last_use = e.last_use;
    return victim;
  }
  victim.key = key_of(slot.item);
  if (victim.key.any() && claimed_by && victim.key < *claimed_by) return {};
  victim.rank = victim.key.any() ? Victim::asked_for : Victim::unasked;
  victim.cost = rebuild_seconds(e.bytes, e.is_zero, e.is_dirty);
  victim.next_use = e.next_use;
  if (e.next_use != kNever && e.next_use >= now_) {
    victim.score = victim.cost / (static_cast<double>(e.next_use - now_) + 1);
  }
  victim.is_dirty = e.is_dirty;
  victim.last_use = e.last_use;
  return victim;
}

/// Whether the use that waits for the item waits for the victim's item, too. To take its slot would
/// gain nothing: the use needs both, so it would be loaded once more.
bool Loader::is_sibling(const Victim& victim, ItemId item) const {
  if (victim.rank != Victim::asked_for) return false;
  const ItemId held = slot_at(victim.slot).item;
  return uses_.is_demanded(item) && uses_.is_demanded(held) &&
         uses_.first_use(item) == uses_.first_use(held);
}

/// Finds a slot for a queued item that has none.
Loader::Claim Loader::claim(ItemId item) {
  Entry& e = entry(item);
  ClassEntry& of = class_of(e);
  const LoadKey key = key_of(item);
  if (!of.empty.empty()) {
    const SlotId slot = of.empty.back();
    of.empty.pop_back();
    take_slot(item, slot);
    return Claim::taken;
  }
  std::optional<Victim> best;
  ranking_.best(static_cast<size_t>(e.slot_class), best_);
  for (const SlotId s : best_) {
    const std::optional<Victim> victim = victim_in(s, &key);
    if (!victim || is_sibling(*victim, item)) continue;
    if (!best || victim->is_better_than(*best)) best = victim;
  }
  if (!best) return Claim::refused;
  // A load ahead that would have to wait for its slot gives up no more slots than fill the window.
  const ItemId holder = slot_at(best->slot).item;
  const Entry& h = entry(holder);
  const bool is_free_at_once =
      (h.state == State::here && !h.is_dirty) || (h.state == State::coming && h.in_flight == 0);
  const bool is_taken_over = slot_at(best->slot).claimant >= 0;
  if (!is_free_at_once && !is_taken_over && !uses_.is_demanded(item) && promised_bytes_ > 0 &&
      promised_bytes_ + of.bytes > settings_.window_bytes) {
    return Claim::refused;
  }
  if (is_taken_over) break_promise(slot_at(best->slot).claimant);
  promise(item, best->slot);
  if (h.state == State::here || h.state == State::coming) evict(holder, DropReason::evicted);
  return e.state == State::coming ? Claim::taken : Claim::promised;
}

void Loader::promise(ItemId item, SlotId slot) {
  Entry& e = entry(item);
  queues_.erase(item);
  e.promised = slot;
  slot_at(slot).claimant = item;
  promised_bytes_ += class_of(e).bytes;
  const ItemId holder = slot_at(slot).item;
  if (entry(holder).state == State::leaving) enqueue_store(holder);
  rank(slot);
}

/// The item is queued without a slot again.
void Loader::break_promise(ItemId item) {
  Entry& e = entry(item);
  slot_at(e.promised).claimant = kNone;
  rank(e.promised);
  e.promised = kNone;
  promised_bytes_ -= class_of(e).bytes;
  unblock_all();
  const LoadKey key = key_of(item);
  if (key.any()) queues_.push(wait_queue(key.queue, e.slot_class), item, key);
}

/// A queued item begins to come.
void Loader::take_slot(ItemId item, SlotId slot) {
  Entry& e = entry(item);
  if (e.at_home != e.latest) throw std::logic_error("loader: home is older than what left it");
  const LoadKey key = key_of(item);
  queues_.erase(item);
  slot_at(slot).item = item;
  ++occupied_;
  e.state = State::coming;
  e.slot = slot;
  e.last_use = ++ticks_;
  e.loaded = e.latest;
  e.pieces = e.is_zero ? 1 : count_pieces(e.bytes, settings_.piece_bytes);
  e.issued = e.done = 0;
  queues_.push(issue_queue(key.queue), item, key);
  touch(e);
}

/// Takes an item that nobody holds out of its slot, as soon as pieces in flight and a write-back
/// allow it.
void Loader::evict(ItemId item, DropReason reason) {
  Entry& e = entry(item);
  touch(e);
  if (e.state == State::here && e.is_dirty && !discards_) {
    start_leaving(item, reason);
    return;
  }
  queues_.erase(item);
  e.reason = reason;
  e.is_dirty = false;
  if (e.in_flight == 0) {
    vacate(item);
  } else {
    e.state = State::cancelling;
    refresh(item);
    rank(e.slot);
  }
}

/// The item's slot is empty now. If it is still asked for, it is queued again.
void Loader::vacate(ItemId item) {
  Entry& e = entry(item);
  const SlotId slot = e.slot;
  const bool has_begun = e.state != State::coming || e.issued > 0;
  if (has_begun) tell(CommandKind::dropped, item, e.reason, e.bytes);
  e.slot = kNone;
  e.leave = false;
  if (e.go_home && e.at_home == e.latest) tell(CommandKind::at_home, item, e.reason, e.bytes);
  e.go_home = false;
  e.state = State::home;
  refresh(item);
  --occupied_;
  slot_at(slot).item = kNone;
  fill(slot);
  key_changed(item);
}

void Loader::fill(SlotId id) {
  SlotEntry& slot = slot_at(id);
  const auto of = std::ranges::find_if(classes_, [&](const ClassEntry& c) { return id < c.end; });
  of->refused = {};
  ranking_.remove(id);
  if (slot.is_closing) {
    slot.is_closing = false;
    slot.is_closed = true;
    open_bytes_ -= of->bytes;
    if (--closing_ == 0) tell(CommandKind::shrunk, kNone, DropReason::shrunk, open_bytes_);
  } else if (slot.claimant >= 0) {
    const ItemId item = slot.claimant;
    slot.claimant = kNone;
    entry(item).promised = kNone;
    promised_bytes_ -= of->bytes;
    unblock_all();
    take_slot(item, id);
  } else {
    of->empty.push_back(id);
  }
}

void Loader::close_cheapest(ClassEntry& of, SlotId id) {
  SlotEntry& slot = slot_at(id);
  if (slot.claimant >= 0) break_promise(slot.claimant);
  --of.open;
  ++closing_;
  slot.is_closing = true;
  ranking_.remove(id);
  if (slot.item < 0) {
    std::erase(of.empty, id);
    fill(id);
    return;
  }
  const ItemId item = slot.item;
  Entry& e = entry(item);
  e.reason = DropReason::shrunk;
  refresh(item);
  if (e.pins == 0 && (e.state == State::here || e.state == State::coming)) {
    evict(item, DropReason::shrunk);
  }
}

void Loader::shrink(std::span<const int32_t> slots) {
  if (slots.size() != classes_.size()) throw std::logic_error("loader: slots of other classes");
  ++closing_;  // tells once, at the end
  for (size_t c = 0; c < classes_.size(); ++c) {
    ClassEntry& of = classes_[c];
    const int32_t left = std::max(of.least, slots[c]);
    while (of.open > left) {
      std::optional<Victim> best;
      for (SlotId s = of.begin; s < of.end; ++s) {
        const std::optional<Victim> victim = victim_in(s, nullptr);
        if (victim && (!best || victim->is_better_than(*best))) best = victim;
      }
      close_cheapest(of, best->slot);  // open slots are victims
    }
  }
  if (--closing_ == 0) tell(CommandKind::shrunk, kNone, DropReason::shrunk, open_bytes_);
}

}  // namespace hearth
