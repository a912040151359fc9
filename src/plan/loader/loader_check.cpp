#include "plan/loader/loader_check.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace hearth {
namespace {

void must(bool holds, const char* what, int32_t which) {
  if (!holds) throw std::logic_error("loader: " + std::string(what) + ": " + std::to_string(which));
}

}  // namespace

void LoaderCheck::validate_items(const Loader& loader) {
  using State = Loader::State;
  std::vector<int32_t> pins(loader.entries_.size());
  for (UseId use = 0; use < loader.uses_.uses(); ++use) {
    if (!loader.uses_.holds(use)) continue;
    for (const Need& need : loader.uses_.needs(use)) ++pins[static_cast<size_t>(need.item)];
  }
  int32_t in_flight = 0;
  for (ItemId item = 0; item < static_cast<ItemId>(loader.entries_.size()); ++item) {
    const Loader::Entry& e = loader.entry(item);
    const bool has_slot = e.slot >= 0;
    const bool waits = e.state == State::home || e.state == State::queued;
    must(has_slot != waits, "an item has a slot and waits for one, or neither", item);
    if (has_slot) must(loader.slot_at(e.slot).item == item, "a slot forgot its item", item);
    must(e.pins == pins[static_cast<size_t>(item)], "a wrong number of holders", item);
    must(e.pins == 0 || e.state == State::here || e.state == State::coming,
         "an item that is held has gone", item);
    must(e.pins == 0 || e.state == State::here || e.issued == e.pieces,
         "an item is held before its pieces are issued", item);
    const bool asked = loader.key_of(item).any();
    must(!asked || e.is_updating || e.state != State::home, "a wanted item is in no queue", item);
    must(!e.is_updating || e.state == State::home || e.state == State::cancelling,
         "an item moves while its home changes", item);
    must(asked || e.state != State::queued, "an item that nobody wants is queued", item);
    const bool in_queue = loader.queues_.queue_of(item) != Loader::kNoQueue;
    const bool shall =
        (e.state == State::queued && e.promised < 0) ||
        ((e.state == State::coming || e.state == State::leaving) && e.issued < e.pieces);
    must(in_queue == shall, "an item is lost, or in a queue without reason", item);
    must(
        e.promised < 0 || (e.state == State::queued && loader.slot_at(e.promised).claimant == item),
        "a promise is broken", item);
    must(e.in_flight == 0 || (has_slot && e.state != State::here), "pieces without a copy", item);
    must(e.state != State::cancelling || e.in_flight > 0, "an empty cancellation", item);
    must(e.at_home <= e.latest, "home is newer than the newest", item);
    if (e.state == State::here) must(e.loaded == e.latest, "a stale copy is here", item);
    must(e.is_dirty || e.at_home == e.latest || loader.discards_, "a newer copy is lost", item);
    in_flight += e.in_flight;
  }
  must(in_flight == loader.window_.pieces(), "pieces of nobody are in flight", in_flight);
}

void LoaderCheck::validate_slots(const Loader& loader) {
  size_t open_bytes = 0, promised_bytes = 0;
  int32_t occupied = 0, closing = 0;
  size_t of = 0;
  for (const Loader::ClassEntry& c : loader.classes_) {
    int32_t open = 0;
    for (SlotId s = c.begin; s < c.end; ++s) {
      const Loader::SlotEntry& slot = loader.slot_at(s);
      const bool is_listed = std::ranges::find(c.empty, s) != c.empty.end();
      must(is_listed == (slot.item < 0 && !slot.is_closed), "an empty slot is lost", s);
      if (slot.item >= 0) {
        const Loader::Entry& e = loader.entry(slot.item);
        must(!slot.is_closed && e.slot == s, "a slot has an item that is elsewhere", s);
        must(e.bytes <= c.bytes, "an item is larger than its slot", s);
        ++occupied;
      }
      const std::optional<Victim> victim = loader.victim_in(s, nullptr);
      const bool is_taken = victim && victim->rank != Victim::empty && victim->rank != Victim::held;
      must(is_taken ? loader.ranking_.is_ranked_as(of, *victim) : !loader.ranking_.is_ranked(s),
           "a slot is ranked by what it was", s);
      if (slot.claimant >= 0) {
        must(slot.item >= 0 && !slot.is_closing, "an empty slot is promised", s);
        must(loader.entry(slot.claimant).promised == s, "a promise is forgotten", s);
        promised_bytes += c.bytes;
      }
      if (!slot.is_closed) open_bytes += c.bytes;
      if (slot.is_closing) ++closing;
      if (!slot.is_closed && !slot.is_closing) ++open;
    }
    ++of;
    must(open == c.open && open >= c.least, "a wrong number of open slots", open);
  }
  must(open_bytes == loader.open_bytes_, "a wrong number of open bytes", 0);
  must(promised_bytes == loader.promised_bytes_, "a wrong number of promised bytes", 0);
  must(occupied == loader.occupied_, "a wrong number of slots in use", occupied);
  must(closing == loader.closing_, "a wrong number of closing slots", closing);
}

void LoaderCheck::validate_ranking(const Loader& loader) {
  std::vector<SlotId> tops;
  for (size_t of = 0; of < loader.classes_.size(); ++of) {
    const Loader::ClassEntry& c = loader.classes_[of];
    const auto best_of = [&](const std::vector<SlotId>& slots) {
      std::optional<Victim> best;
      for (const SlotId s : slots) {
        const std::optional<Victim> victim = loader.victim_in(s, nullptr);
        if (!victim || victim->rank == Victim::empty || victim->rank == Victim::held) continue;
        if (!best || victim->is_better_than(*best)) best = victim;
      }
      return best;
    };
    std::vector<SlotId> slots(static_cast<size_t>(c.end - c.begin));
    std::iota(slots.begin(), slots.end(), c.begin);
    const std::optional<Victim> best = best_of(slots);
    if (!best) continue;
    loader.ranking_.best(of, tops);
    const std::optional<Victim> found = best_of(tops);
    must(found && !best->is_better_than(*found), "a better slot is overlooked", best->slot);
  }
}

void LoaderCheck::validate(const Loader& loader) {
  validate_items(loader);
  validate_slots(loader);
  validate_ranking(loader);
}

}  // namespace hearth
