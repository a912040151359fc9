// Homes and links: what is newer where, which piece is next, and what follows when one has ended.
#include <algorithm>
#include <array>
#include <stdexcept>

#include "plan/loader/loader.h"

namespace hearth {

// Queues: loads with a slot by priority; write-backs, urgent and others; loads without a slot by
// class and priority.
size_t Loader::wait_queue(int priority, int32_t slot_class) const {
  return static_cast<size_t>(kPriorities + 2 + slot_class * kPriorities + priority);
}

size_t Loader::next_piece_bytes(const Entry& e) const {
  return std::min(settings_.piece_bytes,
                  e.bytes - static_cast<size_t>(e.issued) * settings_.piece_bytes);
}

/// A write-back is urgent if a use waits for its slot or its end. In the queues the first come is
/// the first served.
void Loader::enqueue_store(ItemId item) {
  const Entry& e = entry(item);
  if (e.issued == e.pieces) return;
  queues_.erase(item);
  const ItemId claimant = slot_at(e.slot).claimant;
  const bool is_urgent = uses_.is_demanded(item) || (claimant >= 0 && uses_.is_demanded(claimant));
  queues_.push(store_queue(is_urgent), item, {0, 0, e.store_order});
}

void Loader::start_leaving(ItemId item, DropReason reason) {
  Entry& e = entry(item);
  e.state = State::leaving;
  e.reason = reason;
  e.pieces = count_pieces(e.bytes, settings_.piece_bytes);
  e.issued = e.done = 0;
  e.store_order = order_++;
  enqueue_store(item);
  refresh(item);
  rank(e.slot);
}

void Loader::arrived(ItemId item) {
  Entry& e = entry(item);
  e.state = State::here;
  touch(e);
  refresh(item);
  grant_complete();
  if (e.pins == 0) rest(item);
}

void Loader::stored(ItemId item) {
  Entry& e = entry(item);
  e.is_dirty = false;
  e.is_zero = false;
  e.at_home = e.latest;
  const SlotEntry& slot = slot_at(e.slot);
  if (is_shutting_ || slot.is_closing || slot.claimant >= 0 || e.leave) {
    vacate(item);
    return;
  }
  if (e.go_home) tell(CommandKind::at_home, item, DropReason::evicted, e.bytes);
  e.go_home = false;
  arrived(item);
}

void Loader::finished(int32_t ticket) {
  const LinkWindow::InFlight piece = window_.finish(ticket);
  Entry& e = entry(piece.item);
  --e.in_flight;
  if (e.state == State::cancelling) {
    if (e.in_flight == 0) vacate(piece.item);
  } else if (++e.done == e.pieces) {
    if (e.state == State::coming) {
      arrived(piece.item);
    } else {
      stored(piece.item);
    }
  }
}

void Loader::begin_update(ItemId item) {
  Entry& e = entry(item);
  if (e.pins > 0 || e.is_dirty) {
    throw std::logic_error("loader: home is updated while its copy is held or newer");
  }
  e.is_updating = true;
  if (e.state == State::queued) {  // it is asked for, but in no queue
    if (e.promised >= 0) break_promise(item);
    queues_.erase(item);
    e.state = State::home;
    touch(e);
  }
  if (e.state == State::coming || e.state == State::here) evict(item, DropReason::stale);
}

void Loader::updated(ItemId item, bool is_zero) {
  begin_update(item);
  Entry& e = entry(item);
  e.is_updating = false;
  e.at_home = ++e.latest;
  e.is_zero = is_zero;
  if (e.state == State::home) key_changed(item);
}

void Loader::bring_home(ItemId item) {
  Entry& e = entry(item);
  if (!e.is_dirty) {  // unless a shutdown has discarded it
    if (e.at_home == e.latest) tell(CommandKind::at_home, item, DropReason::evicted, e.bytes);
    return;
  }
  e.go_home = true;
  if (e.state == State::here && e.pins == 0) rest(item);
}

/// The most urgent load of a queue that has a slot, or may claim one; kNone if there is none.
ItemId Loader::candidate(int priority) const {
  ItemId best = kNone;
  LoadKey key;
  if (const size_t q = issue_queue(priority); !queues_.empty(q)) {
    best = queues_.top(q);
    key = queues_.top_key(q);
  }
  for (int32_t c = 0; c < static_cast<int32_t>(classes_.size()); ++c) {
    const size_t q = wait_queue(priority, c);
    if (queues_.empty(q) || !(queues_.top_key(q) < key)) continue;
    if (!(queues_.top_key(q) < classes_[static_cast<size_t>(c)].refused)) continue;
    best = queues_.top(q);
    key = queues_.top_key(q);
  }
  return best;
}

bool Loader::can_load(int priority) const { return candidate(priority) >= 0; }

/// Issues a piece of a load; false if none can be.
bool Loader::issue_in() {
  for (const int q : in_turns_.order()) {
    for (ItemId item = candidate(q); item >= 0; item = candidate(q)) {
      Entry& e = entry(item);
      const size_t bytes = e.is_zero ? 0 : std::min(e.bytes, settings_.piece_bytes);
      if (e.state == State::coming) {
        if (!window_.has_room(true, e.is_zero ? 0 : next_piece_bytes(e))) return false;
      } else {
        if (!window_.has_room(true, bytes)) return false;
        const Claim claimed = claim(item);
        if (claimed == Claim::refused) class_of(e).refused = key_of(item);
        if (claimed != Claim::taken) continue;
      }
      std::array<bool, kPriorities> could{};
      for (int p = 0; p < kPriorities; ++p) could[static_cast<size_t>(p)] = can_load(p);
      in_turns_.took(q, could);
      issue(item, e.is_zero ? PieceKind::clear : PieceKind::load);
      return true;
    }
  }
  return false;
}

/// Issues a piece of a write-back; false if none can be.
bool Loader::issue_out() {
  for (const int q : out_turns_.order()) {
    const size_t queue = store_queue(q == 0);
    if (queues_.empty(queue)) continue;
    const ItemId item = queues_.top(queue);
    if (!window_.has_room(false, next_piece_bytes(entry(item)))) return false;
    out_turns_.took(q, {!queues_.empty(store_queue(true)), !queues_.empty(store_queue(false))});
    issue(item, PieceKind::store);
    return true;
  }
  return false;
}

void Loader::issue(ItemId item, PieceKind kind) {
  Entry& e = entry(item);
  LoadCommand command;
  command.kind = CommandKind::piece;
  Piece& piece = command.piece;
  piece.kind = kind;
  piece.item = item;
  piece.slot = e.slot;
  piece.home_offset = static_cast<size_t>(e.issued) * settings_.piece_bytes;
  piece.arena_offset = slot_at(e.slot).offset + piece.home_offset;
  piece.bytes = kind == PieceKind::clear ? e.bytes : next_piece_bytes(e);
  piece.version = e.loaded;
  piece.ticket = window_.start({item, kind, kind == PieceKind::clear ? 0 : piece.bytes});
  told_.push_back(command);
  ++e.in_flight;
  if (++e.issued == e.pieces) {
    queues_.erase(item);
    if (kind != PieceKind::store) {
      refresh(item);
      grant_complete();
    }
  }
}

std::optional<LoadCommand> Loader::next() {
  // A claim may tell of what it drops and then find that there is nothing to issue.
  if (told_begin_ == told_.size() && !issue_in()) issue_out();
  if (told_begin_ < told_.size()) {
    const LoadCommand command = told_[told_begin_++];
    if (told_begin_ == told_.size()) {
      told_.clear();
      told_begin_ = 0;
    }
    return command;
  }
  if (is_shutting_ && !has_ended_ && occupied_ == 0 && uses_.holding() == 0) {
    has_ended_ = true;
    return LoadCommand{};
  }
  return {};
}

}  // namespace hearth
