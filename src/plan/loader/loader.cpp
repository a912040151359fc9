#include "plan/loader/loader.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace hearth {
namespace {

void expect_caller(bool holds, const char* what) {
  if (!holds) throw std::logic_error(std::string("loader: ") + what);
}

size_t count_slots(std::span<const SlotClass> classes) {
  size_t slots = 0;
  for (const SlotClass& c : classes) slots += static_cast<size_t>(std::max(c.slots, 0));
  return slots;
}

}  // namespace

Loader::Loader(std::span<const LoadItem> items, std::span<const SlotClass> classes,
               const LoaderSettings& settings, int32_t uses)
    : settings_(settings),
      queues_(items.size(), kPriorities * (classes.size() + 1) + 2),
      uses_(items.size(), uses),
      ranking_(count_slots(classes)),
      window_(settings),
      in_turns_(settings.patience),
      out_turns_(settings.patience) {
  for (const SlotClass& c : classes) {
    expect_caller(c.least >= 0 && c.least <= c.slots, "more slots must stay than there are");
    ClassEntry& of = classes_.emplace_back();
    of.bytes = c.bytes;
    of.begin = static_cast<SlotId>(slots_.size());
    of.open = c.slots;
    of.least = c.least;
    for (int32_t i = 0; i < c.slots; ++i) {
      slots_.emplace_back().offset = arena_bytes_;
      arena_bytes_ += c.bytes;
    }
    of.end = static_cast<SlotId>(slots_.size());
    for (SlotId s = of.end; s-- > of.begin;) of.empty.push_back(s);
  }
  open_bytes_ = arena_bytes_;
  for (const LoadItem& item : items) {
    Entry& e = entries_.emplace_back();
    e.bytes = item.bytes;
    e.is_zero = item.zero_at_home;
    e.slot_class = kNone;
    for (size_t c = 0; c < classes_.size(); ++c) {
      const bool fits = item.bytes > 0 && item.bytes <= classes_[c].bytes;
      if (fits && (e.slot_class < 0 || classes_[c].bytes < class_of(e).bytes)) {
        e.slot_class = static_cast<int32_t>(c);
      }
    }
    expect_caller(e.slot_class >= 0, "an item fits no slot");
    for (const bool is_zero : {false, true}) {
      for (const bool is_dirty : {false, true}) {
        ranking_.add_cost(static_cast<size_t>(e.slot_class),
                          rebuild_seconds(e.bytes, is_zero, is_dirty));
      }
    }
  }
  ranking_.finish_costs();
}

LoadKey Loader::key_of(ItemId item) const {
  if (uses_.is_demanded(item)) {
    return {static_cast<uint8_t>(Priority::expert), std::numeric_limits<int32_t>::min(),
            uses_.demand_order(item)};
  }
  return entry(item).want;
}

// After what asks for the item has changed: its place in the queues.
void Loader::key_changed(ItemId item) {
  Entry& e = entry(item);
  const LoadKey key = key_of(item);
  touch(e);
  switch (e.state) {
    case State::home:
      if (!key.any() || e.is_updating) return;
      e.state = State::queued;
      queues_.push(wait_queue(key.queue, e.slot_class), item, key);
      return;
    case State::queued:
      if (key.any()) {
        if (e.promised >= 0) {  // the write-back that it waits for may have become urgent
          const ItemId leaving = slot_at(e.promised).item;
          if (entry(leaving).state == State::leaving) enqueue_store(leaving);
          rank(e.promised);
          return;
        }
        queues_.erase(item);
        queues_.push(wait_queue(key.queue, e.slot_class), item, key);
        return;
      }
      if (e.promised >= 0) break_promise(item);
      queues_.erase(item);
      e.state = State::home;
      return;
    case State::coming:
      if (queues_.queue_of(item) == kNoQueue) return;  // all of it is issued
      queues_.erase(item);
      if (key.any()) {
        queues_.push(issue_queue(key.queue), item, key);
      } else {  // what is coming comes, after all others
        constexpr auto last = static_cast<uint8_t>(Priority::stage);
        queues_.push(issue_queue(last), item,
                     {last, std::numeric_limits<int32_t>::max(), order_++});
      }
      return;
    case State::cancelling:
    case State::here:
    case State::leaving: return;
  }
}

void Loader::tell(CommandKind kind, ItemId item, DropReason reason, size_t amount) {
  LoadCommand command;
  command.kind = kind;
  command.item = item;
  command.reason = reason;
  command.amount = amount;
  told_.push_back(command);
}

void Loader::tell(CommandKind kind, UseId use) {
  LoadCommand command;
  command.kind = kind;
  command.use = use;
  told_.push_back(command);
}

void Loader::want(const Want& want) {
  expect_caller(want.rank >= 0, "a rank below 0");
  if (is_shutting_) return;
  Entry& e = entry(want.item);
  const LoadKey key = {static_cast<uint8_t>(want.priority), want.rank, order_};
  if (e.want.any() && std::pair(e.want.queue, e.want.rank) <= std::pair(key.queue, key.rank)) {
    return;
  }
  ++order_;
  e.want = key;
  e.leave = false;
  key_changed(want.item);
}

bool Loader::remove(ItemId item) {
  if (uses_.is_demanded(item)) return false;
  const bool was_queued = where(item) == Where::queued;
  entry(item).want = {};
  key_changed(item);
  return was_queued;
}

void Loader::drop(ItemId item) {
  if (uses_.is_demanded(item)) return;
  Entry& e = entry(item);
  e.want = {};
  key_changed(item);
  if (e.state == State::coming && e.pins == 0) {
    evict(item, DropReason::unwanted);
  } else if (e.state == State::coming || e.state == State::here || e.state == State::leaving) {
    e.leave = true;
    touch(e);
    if (e.state == State::here && e.pins == 0) rest(item);
  }
}

void Loader::expect(ItemId item, Position next_use) {
  Entry& e = entry(item);
  e.next_use = next_use;
  touch(e);
}

// Tells uses that wait for the item whether it is ready.
void Loader::refresh(ItemId item) {
  if (!uses_.is_demanded(item)) return;
  const Entry& e = entry(item);
  const bool is_closing = e.slot >= 0 && slot_at(e.slot).is_closing;
  const bool arrived = e.state == State::here && !is_closing;
  const bool issued = arrived || (e.state == State::coming && !is_closing && e.issued == e.pieces);
  uses_.set_ready(item, arrived, issued, complete_);
}

void Loader::grant_complete() {
  for (size_t i = 0; i < complete_.size(); ++i) {
    const UseId use = complete_[i];
    if (!uses_.is_complete(use)) continue;
    uses_.grant(use);
    for (const Need& need : uses_.needs(use)) {
      Entry& e = entry(need.item);
      ++e.pins;
      e.want = {};
      e.leave = false;
      e.last_use = ++ticks_;
      if (need.access == UseAccess::write) e.is_dirty = true;
      key_changed(need.item);
    }
    tell(CommandKind::wake, use);
  }
  complete_.clear();
}

void Loader::demand(UseId use, std::span<const Need> needs, Start start) {
  for (ClassEntry& c : classes_) c.needed = 0;
  ++ticks_;
  for (const Need& need : needs) {
    Entry& e = entry(need.item);
    if (e.counted == ticks_) continue;  // needed twice
    e.counted = ticks_;
    expect_caller(++class_of(e).needed <= class_of(e).open, "a use needs more slots than are open");
  }
  uses_.demand(use, needs, start, order_);
  order_ += needs.size();
  if (is_shutting_) {
    uses_.free(use);
    tell(CommandKind::refused, use);
    return;
  }
  for (const Need& need : needs) {
    Entry& e = entry(need.item);
    e.leave = false;
    key_changed(need.item);
  }
  for (const Need& need : needs) refresh(need.item);
  if (needs.empty()) complete_.push_back(use);
  grant_complete();
}

void Loader::withdraw(UseId use) {
  expect_caller(uses_.is_waiting(use), "a use that does not wait is withdrawn");
  uses_.free(use);
  for (const Need& need : uses_.needs(use)) key_changed(need.item);
}

void Loader::end_use(UseId use) {
  expect_caller(uses_.holds(use), "a use ends that holds nothing");
  for (const Need& need : uses_.needs(use)) {
    expect_caller(entry(need.item).state == State::here, "a use ends before its items are here");
  }
  uses_.free(use);
  for (const Need& need : uses_.needs(use)) {
    Entry& e = entry(need.item);
    if (need.access == UseAccess::write) e.loaded = ++e.latest;
    if (--e.pins == 0) rest(need.item);
  }
}

// Nobody holds an item that is here: may it stay?
void Loader::rest(ItemId item) {
  Entry& e = entry(item);
  touch(e);
  const bool is_closing = slot_at(e.slot).is_closing;
  if (is_shutting_ || is_closing || e.leave) {
    evict(item, is_shutting_ ? DropReason::shut_down
                             : (is_closing ? DropReason::shrunk : DropReason::unwanted));
  } else if (e.go_home) {
    start_leaving(item, DropReason::evicted);
  }
}

void Loader::shut_down(Ending ending) {
  is_shutting_ = true;
  discards_ = discards_ || ending == Ending::discard;
  for (UseId use = 0; use < uses_.uses(); ++use) {
    if (!uses_.is_waiting(use)) continue;
    uses_.free(use);
    tell(CommandKind::refused, use);
  }
  const auto items = static_cast<ItemId>(entries_.size());
  for (ItemId item = 0; item < items; ++item) {
    entry(item).want = {};
    key_changed(item);
  }
  for (ItemId item = 0; item < items; ++item) {
    const Entry& e = entry(item);
    if (e.pins > 0) continue;
    if (e.state == State::coming || e.state == State::here ||
        (e.state == State::leaving && discards_)) {
      evict(item, DropReason::shut_down);
    }
  }
}

Where Loader::where(ItemId item) const {
  switch (entry(item).state) {
    case State::home: return key_of(item).any() ? Where::queued : Where::home;
    case State::queued: return Where::queued;
    case State::coming: return Where::coming;
    case State::here: return Where::here;
    case State::cancelling:
    case State::leaving: break;
  }
  return Where::leaving;
}

size_t Loader::arena_offset(ItemId item) const {
  expect_caller(entry(item).slot >= 0, "an item without a slot has no address");
  return slot_at(entry(item).slot).offset;
}

}  // namespace hearth
