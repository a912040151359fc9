#include "plan/loader_world.h"

#include <algorithm>
#include <limits>

namespace hearth::test {
LoaderWorld::LoaderWorld(const LoaderCase& c, bool reads_late)
    : case_(c), loader_(c.items, c.classes, c.settings, c.uses), reads_late_(reads_late) {
  for (const LoadItem& item : c.items) {
    Item& i = items_.emplace_back();
    i.home.assign(item.bytes, 0);
    i.is_zero = item.zero_at_home;
    i.slot_bytes = std::numeric_limits<size_t>::max();
    for (const SlotClass& s : c.classes) {
      if (s.bytes >= item.bytes) i.slot_bytes = std::min(i.slot_bytes, s.bytes);
    }
  }
  uses_.resize(static_cast<size_t>(c.uses));
  use_orders_.resize(uses_.size());
  for (const SlotClass& s : c.classes) {
    budget_ += s.bytes * static_cast<size_t>(s.slots);
    open_.push_back(s.slots);
  }
  arena_.resize(budget_);
  must(loader_.arena_bytes() == budget_, "the arena is larger than its slots");
}

void LoaderWorld::want(const Want& want) {
  ++events_;
  Item& item = at(want.item);
  const LoadKey key = {static_cast<uint8_t>(want.priority), want.rank, order_++};
  const bool holds =
      item.want && std::pair(item.want->queue, item.want->rank) <= std::pair(key.queue, key.rank);
  if (!is_shutting_ && !holds) item.want = key;
  loader_.want(want);
  take_commands();
}

bool LoaderWorld::remove(ItemId item) {
  ++events_;
  const bool is_queued = loader_.where(item) == Where::queued;
  const bool removed = loader_.remove(item);
  must(removed == (is_queued && !at(item).demand), "remove: not what was queued");
  if (!at(item).demand) at(item).want.reset();
  must(!removed || loader_.where(item) == Where::home, "remove: it is still there");
  take_commands();
  return removed;
}

void LoaderWorld::drop(ItemId item) {
  ++events_;
  if (!at(item).demand) at(item).want.reset();
  loader_.drop(item);
  take_commands();
}

void LoaderWorld::expect(ItemId item, Position next_use) {
  ++events_;
  loader_.expect(item, next_use);
  take_commands();
}

void LoaderWorld::advance(Position now) {
  ++events_;
  loader_.advance(now);
}

void LoaderWorld::renew_demands() {
  for (Item& item : items_) item.demand.reset();
  for (size_t u = 0; u < uses_.size(); ++u) {
    if (uses_[u].state != UseState::waiting) continue;
    uint64_t order = use_orders_[u];
    for (const Need& need : uses_[u].needs) {
      const LoadKey key = {0, std::numeric_limits<int32_t>::min(), order++};
      std::optional<LoadKey>& demand = at(need.item).demand;
      if (!demand || key < *demand) demand = key;
    }
  }
}

void LoaderWorld::demand(UseId id, const std::vector<Need>& needs, Start start) {
  ++events_;
  Use& use = uses_[static_cast<size_t>(id)];
  use = {UseState::waiting, start, needs};
  use_orders_[static_cast<size_t>(id)] = order_;
  order_ += needs.size();
  renew_demands();
  loader_.demand(id, needs, start);
  take_commands();
}

void LoaderWorld::withdraw(UseId id) {
  ++events_;
  uses_[static_cast<size_t>(id)].state = UseState::free;
  renew_demands();
  loader_.withdraw(id);
  take_commands();
}

void LoaderWorld::end_use(UseId id) {
  ++events_;
  Use& use = uses_[static_cast<size_t>(id)];
  for (const Need& need : use.needs) check_content(need.item);
  for (const Need& need : use.needs) {
    if (need.access == UseAccess::read) continue;
    Item& item = at(need.item);
    ++item.newest;
    for (size_t b = 0; b < item.home.size(); ++b) arena_[item.offset + b].version = item.newest;
  }
  use.state = UseState::free;
  loader_.end_use(id);
  take_commands();
}

void LoaderWorld::begin_update(ItemId id) {
  ++events_;
  at(id).is_updating = true;
  loader_.begin_update(id);
  take_commands();
}

void LoaderWorld::updated(ItemId id, bool is_zero) {
  ++events_;
  Item& item = at(id);
  item.is_updating = false;
  item.newest++;
  std::ranges::fill(item.home, item.newest);
  item.is_zero = is_zero;
  loader_.updated(id, is_zero);
  take_commands();
}

void LoaderWorld::bring_home(ItemId item) {
  ++events_;
  at(item).asked_home = true;
  loader_.bring_home(item);
  take_commands();
}

void LoaderWorld::shrink(const std::vector<int32_t>& slots) {
  ++events_;
  budget_ = 0;
  for (size_t c = 0; c < slots.size(); ++c) {
    const SlotClass& of = case_.classes[c];
    open_[c] = std::min(open_[c], std::max(of.least, slots[c]));
    budget_ += of.bytes * static_cast<size_t>(open_[c]);
  }
  loader_.shrink(slots);
  take_commands();
}

void LoaderWorld::shut_down(Ending ending) {
  ++events_;
  is_shutting_ = true;
  discards_ = discards_ || ending == Ending::discard;
  for (Item& item : items_) item.want.reset();
  loader_.shut_down(ending);
  take_commands();
}

size_t LoaderWorld::in_flight(bool in) const { return flying_[in ? 1 : 0].size(); }

void LoaderWorld::read_source(Flying& flying) const {
  const Piece& piece = flying.piece;
  flying.content.clear();
  for (size_t b = 0; b < piece.bytes; ++b) {
    if (piece.kind == PieceKind::store) {
      const Cell& cell = arena_[piece.arena_offset + b];
      must(cell.item == piece.item, "a write-back of another item");
      flying.content.push_back(cell.version);
    } else {
      flying.content.push_back(at(piece.item).home[piece.home_offset + b]);
      must(flying.content.back() != kBeingWritten, "a load reads a home that is being written");
    }
  }
}

void LoaderWorld::finish_piece(bool in, size_t n) {
  ++events_;
  std::vector<Flying>& flying = flying_[in ? 1 : 0];
  Flying f = flying.at(n);
  flying.erase(flying.begin() + static_cast<std::ptrdiff_t>(n));
  if (reads_late_) read_source(f);
  const Piece& piece = f.piece;
  Item& item = at(piece.item);
  if (piece.kind != PieceKind::clear) bytes_in_flight_[in ? 1 : 0] -= piece.bytes;
  for (size_t b = 0; b < piece.bytes; ++b) {
    if (in) {
      arena_[piece.arena_offset + b] = {piece.item, f.content[b]};
    } else {
      item.home[piece.home_offset + b] = f.content[b];
    }
  }
  if (in) {
    item.arrived += piece.bytes;
  } else {
    item.stored += piece.bytes;
    if (item.stored == item.home.size()) {
      item.is_newer = false;
      item.is_zero = false;
      item.stored = 0;
      for (const uint64_t version : item.home) must(version == item.newest, "a torn write-back");
    }
  }
  loader_.finished(piece.ticket);
  take_commands();
}

bool LoaderWorld::can_end(UseId id) const {
  const Use& use = uses_[static_cast<size_t>(id)];
  return use.state == UseState::woken && std::ranges::all_of(use.needs, [&](const Need& need) {
           return at(need.item).arrived == at(need.item).home.size();
         });
}

bool LoaderWorld::is_held(ItemId item) const {
  return std::ranges::any_of(uses_, [&](const Use& use) {
    return use.state == UseState::woken &&
           std::ranges::any_of(use.needs, [&](const Need& n) { return n.item == item; });
  });
}

bool LoaderWorld::can_update(ItemId item) const { return !is_held(item) && !at(item).is_newer; }

std::optional<LoadKey> LoaderWorld::key(ItemId item) const {
  return at(item).demand ? at(item).demand : at(item).want;
}

void LoaderWorld::check_at_rest() const {
  must(flying_[0].empty() && flying_[1].empty(), "at rest with pieces in flight");
  for (const Use& use : uses_) {
    must(use.state == UseState::free || use.state == UseState::refused,
         "a use waits forever, or has not ended");
  }
  must(has_ended_ == is_shutting_, "no end after the shutdown");
  size_t taken = 0;
  for (ItemId id = 0; id < static_cast<ItemId>(items_.size()); ++id) {
    const Item& item = at(id);
    if (item.is_owner) taken += item.slot_bytes;
    must(!item.asked_home || discards_, "an item did not go home");
    if (is_shutting_) {
      must(!item.is_owner, "a slot is not empty after the end");
      must(discards_ || !item.is_newer, "the end has lost what was newer");
      continue;
    }
    const Where where = loader_.where(id);
    must(where == Where::home || where == Where::here || where == Where::queued, "not at rest");
    if (!item.want) {
      must(where != Where::queued, "an item is queued that nobody wants");
      continue;
    }
    if (where == Where::here) continue;
    // It waits since all slots have what is more urgent.
    for (const SlotClass& c : case_.classes) {
      if (c.bytes != item.slot_bytes) continue;
      int32_t others = 0;
      for (ItemId o = 0; o < static_cast<ItemId>(items_.size()); ++o) {
        if (at(o).slot_bytes != item.slot_bytes || !at(o).is_owner) continue;
        must(at(o).want && *at(o).want < *item.want, "a wanted item is lost");
        ++others;
      }
      must(others >= c.least, "a slot is empty, but a wanted item does not come");
    }
  }
  must(taken <= loader_.open_bytes(), "more bytes than the budget");
  must(loader_.open_bytes() == budget_, "the budget is not kept");
}

void LoaderWorld::come_to_rest() {
  for (bool is_done = false; !is_done;) {
    is_done = true;
    for (ItemId item = 0; item < static_cast<ItemId>(items_.size()); ++item) {
      if (is_updating(item) && can_update(item)) updated(item, false);
    }
    for (const bool in : {true, false}) {
      if (in_flight(in) == 0) continue;
      finish_piece(in);
      is_done = false;
    }
    for (UseId use = 0; use < static_cast<UseId>(uses_.size()); ++use) {
      if (!can_end(use)) continue;
      end_use(use);
      is_done = false;
    }
  }
  check_at_rest();
}

}  // namespace hearth::test
