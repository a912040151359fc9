// The commands of a loader, carried out and checked.
#include <algorithm>

#include "plan/loader/loader_check.h"
#include "plan/loader_world.h"

namespace hearth::test {

void LoaderWorld::check_content(ItemId id) const {
  const Item& item = at(id);
  must(item.is_owner && item.arrived == item.home.size(), "a use before its item is here");
  for (size_t b = 0; b < item.home.size(); ++b) {
    const Cell& cell = arena_[item.offset + b];
    must(cell.item == id, "a use sees another item");
    must(cell.version == item.newest, "a use sees a stale copy");
  }
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
    must(!item.is_updating, "a load begins while its home changes");
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
    if (need.access == UseAccess::write) item.is_newer = true;
    item.want.reset();
  }
  renew_demands();
}

void LoaderWorld::dropped(const LoadCommand& command) {
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
  while (const std::optional<LoadCommand> command = loader_.next()) {
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
      case CommandKind::ended:
        must(is_shutting_ && flying_[0].empty() && flying_[1].empty(), "an end in flight");
        has_ended_ = true;
        break;
    }
    told_.push_back(*command);
  }
  if (checks_books_) LoaderCheck::validate(loader_);
  for (ItemId id = 0; id < static_cast<ItemId>(items_.size()); ++id) {
    if (at(id).is_updating && !loader_.reads_home(id)) {
      std::ranges::fill(at(id).home, kBeingWritten);
    }
    must(loader_.version(id) == at(id).newest, "a version is not counted");
    must(loader_.is_held(id) == is_held(id), "an item is held by nobody, or not by its use");
    const Where where = loader_.where(id);
    must(at(id).is_owner == (where == Where::here || where == Where::leaving ||
                             (where == Where::coming && at(id).is_owner)),
         "an item without a slot is there");
  }
}

}  // namespace hearth::test
