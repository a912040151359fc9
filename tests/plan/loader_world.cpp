#include "plan/loader_world.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "plan/loader/loader_check.h"

namespace hearth::test {
namespace {

void must(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

}  // namespace

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
  for (const SlotClass& s : c.classes) budget_ += s.bytes * static_cast<size_t>(s.slots);
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
  if (removed) {
    at(item).want.reset();
    must(loader_.where(item) == Where::home, "remove: it is still there");
  }
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

void LoaderWorld::check_content(ItemId id) const {
  const Item& item = at(id);
  must(item.is_owner && item.arrived == item.home.size(), "a use before its item is here");
  for (size_t b = 0; b < item.home.size(); ++b) {
    const Cell& cell = arena_[item.offset + b];
    must(cell.item == id, "a use sees another item");
    must(cell.version == item.newest, "a use sees a stale copy");
  }
}

void LoaderWorld::end_use(UseId id) {
  ++events_;
  Use& use = uses_[static_cast<size_t>(id)];
  for (const Need& need : use.needs) check_content(need.item);
  for (const Need& need : use.needs) {
    if (need.access == Access::read) continue;
    Item& item = at(need.item);
    ++item.newest;
    for (size_t b = 0; b < item.home.size(); ++b) arena_[item.offset + b].version = item.newest;
  }
  use.state = UseState::free;
  loader_.end_use(id);
  take_commands();
}

void LoaderWorld::updated(ItemId id, bool is_zero) {
  ++events_;
  Item& item = at(id);
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

void LoaderWorld::shrink(size_t budget) {
  ++events_;
  budget_ = std::min(budget_, budget);
  loader_.shrink(budget);
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

// No load that could go is more urgent than the one that goes.
void LoaderWorld::check_priority(ItemId loaded) const {
  const std::optional<LoadKey> own = key(loaded);
  for (ItemId id = 0; id < static_cast<ItemId>(items_.size()); ++id) {
    const Item& item = at(id);
    const std::optional<LoadKey> other = key(id);
    if (!other || (own && !(*other < *own))) continue;
    if (item.is_owner) {
      const bool is_coming = loader_.where(id) == Where::coming;
      must(!is_coming || item.asked == item.home.size(), "a less urgent piece goes first");
      continue;
    }
    if (item.slot_bytes != at(loaded).slot_bytes) continue;
    must(at(loaded).asked > 0, "a less urgent load begins first");
  }
}

void LoaderWorld::start_load(const Piece& piece) {
  Item& item = at(piece.item);
  if (!item.is_owner) {
    must(!is_shutting_, "a load begins in a shutdown");
    must(piece.home_offset == 0, "a load does not begin at its beginning");
    item.offset = piece.arena_offset;
    must(item.offset + item.slot_bytes <= arena_.size(), "a slot beyond the arena");
    size_t taken = item.slot_bytes;
    for (const Item& other : items_) {
      if (!other.is_owner) continue;
      taken += other.slot_bytes;
      must(item.offset + item.slot_bytes <= other.offset ||
               other.offset + other.slot_bytes <= item.offset,
           "slots overlap");
    }
    must(taken <= loader_.open_bytes(), "more bytes than the budget");
    if (is_strict_) check_priority(piece.item);
    item.is_owner = true;
    item.asked = item.arrived = 0;
    loads_.push_back(piece.item);
  } else if (is_strict_) {
    check_priority(piece.item);
  }
  must(piece.home_offset == item.asked, "a piece is left out or comes twice");
  must(piece.version == item.newest && !item.is_newer, "a load of an old version");
  must(piece.kind == PieceKind::load || item.is_zero, "a home that is not zero is cleared");
  must(piece.kind == PieceKind::clear || !item.is_zero, "zeros cross the link");
  must(!is_held(piece.item) || item.asked < item.home.size(), "a piece to an item in use");
  item.asked += piece.bytes;
}

void LoaderWorld::start_store(const Piece& piece) {
  Item& item = at(piece.item);
  must(item.is_owner && item.is_newer, "a write-back of what is not newer");
  must(!is_held(piece.item), "a write-back of what is in use");
  must(!discards_, "a write-back in a shutdown that discards");
  must(piece.version == item.newest, "a write-back of an old version");
}

void LoaderWorld::start(const Piece& piece) {
  const bool in = piece.kind != PieceKind::store;
  const size_t d = in ? 1 : 0;
  Item& item = at(piece.item);
  must(piece.bytes > 0 && piece.home_offset + piece.bytes <= item.home.size(),
       "a piece beyond its item");
  if (in) {
    start_load(piece);
  } else {
    start_store(piece);
  }
  must(piece.arena_offset == item.offset + piece.home_offset, "a piece beside its slot");
  for (const std::vector<Flying>& flying : flying_) {
    for (const Flying& other : flying) {
      must(piece.arena_offset + piece.bytes <= other.piece.arena_offset ||
               other.piece.arena_offset + other.piece.bytes <= piece.arena_offset,
           "two pieces at one place");
      must(piece.ticket != other.piece.ticket, "two pieces with one ticket");
      must(other.piece.item != piece.item || (other.piece.kind == PieceKind::store) == !in,
           "an item comes and goes");
    }
  }
  if (piece.kind != PieceKind::clear) {
    bytes_in_flight_[d] += piece.bytes;
    must(piece.bytes <= case_.settings.piece_bytes, "a piece is too large");
  }
  must(bytes_in_flight_[d] <= case_.settings.window_bytes, "more bytes than the window");
  must(static_cast<int32_t>(flying_[d].size()) < case_.settings.window_pieces,
       "more pieces than the window");
  pieces_[d].push_back(piece.item);
  Flying& flying = flying_[d].emplace_back();
  flying.piece = piece;
  if (!reads_late_) read_source(flying);
}

void LoaderWorld::wake(UseId id) {
  Use& use = uses_[static_cast<size_t>(id)];
  must(use.state == UseState::waiting, "a use is woken that does not wait");
  use.state = UseState::woken;
  for (const Need& need : use.needs) {
    Item& item = at(need.item);
    must(item.is_owner && item.asked == item.home.size(), "a use before its pieces are issued");
    if (use.start == Start::arrived) check_content(need.item);
    if (need.access == Access::write) item.is_newer = true;
    item.want.reset();
  }
  renew_demands();
}

void LoaderWorld::dropped(const Command& command) {
  Item& item = at(command.item);
  must(item.is_owner, "an item without a slot is dropped");
  must(!is_held(command.item), "an item in use is dropped");
  must(!item.is_newer || discards_, "a newer copy is dropped");
  must(command.amount == item.home.size(), "a wrong number of bytes is dropped");
  for (const std::vector<Flying>& flying : flying_) {
    for (const Flying& f : flying) {
      must(f.piece.item != command.item, "an item is dropped in flight");
    }
  }
  item.is_owner = false;
  item.asked = item.arrived = item.stored = 0;
}

void LoaderWorld::take_commands() {
  while (const std::optional<Command> command = loader_.next()) {
    digest_ = (digest_ ^ (static_cast<uint64_t>(command->kind) << 56 ^
                          static_cast<uint64_t>(command->piece.arena_offset) << 32 ^
                          static_cast<uint64_t>(command->item + 1) << 16 ^
                          static_cast<uint64_t>(command->use + 1) << 8 ^
                          static_cast<uint64_t>(command->piece.item))) *
              0x9e3779b97f4a7c15u;
    digest_ ^= digest_ >> 29;
    must(!has_ended_ || command->kind == CommandKind::refused ||
             command->kind == CommandKind::at_home,
         "a command after the end");
    switch (command->kind) {
      case CommandKind::piece: start(command->piece); continue;
      case CommandKind::wake: wake(command->use); continue;
      case CommandKind::refused:
        must(is_shutting_, "a use is refused before the shutdown");
        must(uses_[static_cast<size_t>(command->use)].state == UseState::waiting,
             "a use is refused that does not wait");
        uses_[static_cast<size_t>(command->use)].state = UseState::refused;
        renew_demands();
        break;
      case CommandKind::dropped: dropped(*command); break;
      case CommandKind::at_home:
        must(!at(command->item).is_newer, "at home, but the slot is newer");
        at(command->item).asked_home = false;
        break;
      case CommandKind::shrunk:
        must(command->amount == loader_.open_bytes(), "a wrong number of open bytes");
        break;
      case CommandKind::short_of: break;
      case CommandKind::ended:
        must(is_shutting_ && flying_[0].empty() && flying_[1].empty(), "an end in flight");
        has_ended_ = true;
        break;
    }
    told_.push_back(*command);
  }
  if (checks_books_) LoaderCheck::validate(loader_);
  for (ItemId id = 0; id < static_cast<ItemId>(items_.size()); ++id) {
    must(loader_.version(id) == at(id).newest, "a version is not counted");
    must(loader_.is_held(id) == is_held(id), "an item is held by nobody, or not by its use");
    const Where where = loader_.where(id);
    must(at(id).is_owner == (where == Where::here || where == Where::leaving ||
                             (where == Where::coming && at(id).is_owner)),
         "an item without a slot is there");
  }
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
  bool is_short = false;
  for (const Command& told : told_) is_short = is_short || told.kind == CommandKind::short_of;
  must(is_short || loader_.open_bytes() <= budget_, "the budget is not kept");
}

void LoaderWorld::come_to_rest() {
  for (bool is_done = false; !is_done;) {
    is_done = true;
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
