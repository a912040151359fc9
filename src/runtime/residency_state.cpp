// How a residency carries out what the loader commands, and what follows from the device's events.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "runtime/residency_state.h"

namespace hearth {
namespace {

size_t slots_of(const SlotPlan& plan) {
  size_t slots = 0;
  for (const SlotClass& c : plan.classes) {
    HEARTH_CHECK(c.bytes % kSlotAlignment == 0, "residency: a slot that is not aligned");
    slots += static_cast<size_t>(c.slots);
  }
  return slots;
}

}  // namespace

ResidencyState::ResidencyState(Device& device, const ParameterTable& table, const SlotPlan& plan,
                               const PinnedHomes& homes, LinkClock& clock)
    : blocks(table, plan),
      device_(device),
      clock_(clock),
      loader_(blocks.load_items(), plan.classes, plan.settings, plan.leases),
      arena_(device.reserve("slots", SpaceKind::device, loader_.arena_bytes())),
      uses_(static_cast<size_t>(plan.leases)),
      slots_(slots_of(plan)),
      journeys_(blocks.items().size()) {
  for (SlotState& slot : slots_) slot.arrived = device.create_event();
  for (int32_t use = plan.leases; use-- > 0;) {
    use_at(use).passed = device.create_event();
    free_uses_.push_back(use);
  }
  const CopyLane::Calls calls = {[this](const CopyDone& done) { passed(done); },
                                 [this](std::exception_ptr error) { fail(std::move(error)); }};
  const int32_t most = plan.settings.window_pieces;
  in_.emplace(device, StreamUse::copy_in, homes, most, calls, clock);
  out_.emplace(device, StreamUse::copy_out, homes, most, calls, clock);
  if (device.has_own_clock()) {
    watch_.emplace(EventWatch::Calls{[this](int32_t use) { use_ended(use); }, calls.failed});
  }
}

/// Carries out what the loader commands. Locked.
void ResidencyState::carry_out() {
  while (const std::optional<LoadCommand> command = loader_.next()) {
    switch (command->kind) {
      case CommandKind::piece: start(command->piece); break;
      case CommandKind::wake: use_at(command->use).state = Use::State::woken; break;
      case CommandKind::dropped:
        counts.evictions += command->reason == DropReason::evicted ? 1 : 0;
        counts.stale += command->reason == DropReason::stale ? 1 : 0;
        if (Journey& journey = journey_of(command->item); journey.here_since) {
          journey.here_s += clock_.now() - *std::exchange(journey.here_since, std::nullopt);
        }
        if (shrink_ && command->reason == DropReason::shrunk) {
          ++shrink_->blocks;
          shrink_->bytes += command->amount;
        }
        break;
      case CommandKind::at_home: arrived_home(command->item); break;
      case CommandKind::shrunk:
        if (shrink_) shrink_->open_bytes = command->amount;
        is_shrunk_ = true;
        break;
      case CommandKind::refused:
      case CommandKind::ended: break;  // it is never told to shut down
    }
  }
  changed_.notify_all();
}

void ResidencyState::start(const Piece& piece) {
  const TravelItem& item = blocks.item(piece.item);
  const bool in = piece.kind != PieceKind::store;
  const bool is_last = piece.home_offset + piece.bytes == item.layout.bytes;
  SlotState& slot = slots_[static_cast<size_t>(piece.slot)];
  Journey& journey = journey_of(piece.item);
  if (in && piece.home_offset == 0) {  // nobody uses the slot's event any more
    slot.arrived->reset();
    journey.slot = piece.slot;
    journey.is_late = false;
    if (item.cargo == Cargo::weights) journey.home_version = blocks.home_version(piece.item);
  }
  if (in && is_last) slot.order = ++pieces_;
  CopyJob job;
  job.piece = piece;
  job.home = blocks.home(piece.item);
  job.slot = slot_of(piece.item);
  job.arrived = in && is_last ? slot.arrived.get() : nullptr;
  (in ? in_ : out_)->push(job);
}

/// A lane reports a piece.
void ResidencyState::passed(const CopyDone& done) {
  const std::lock_guard lock(mutex_);
  switch (done.piece.kind) {
    case PieceKind::load: counts.bytes_in += done.bytes; break;
    case PieceKind::clear: counts.bytes_cleared += done.piece.bytes; break;
    case PieceKind::store: counts.bytes_out += done.bytes; break;
  }
  if (error_) return;
  finish_journey(done);
  loader_.finished(done.piece.ticket);
  std::erase_if(ending_, [&](int32_t use) { return end_if_here(use); });
  carry_out();
}

void ResidencyState::finish_journey(const CopyDone& done) {
  const Piece& piece = done.piece;
  Journey& journey = journey_of(piece.item);
  if (piece.home_offset == 0) {
    journey.begin = done.begin;
    journey.bytes = 0;
  }
  journey.bytes += done.bytes;
  const TravelItem& item = blocks.item(piece.item);
  if (piece.home_offset + piece.bytes < item.layout.bytes) return;
  const bool in = piece.kind != PieceKind::store;
  ++(in ? counts.loads : counts.stores);
  if (in && loader_.where(piece.item) == Where::coming) journey.here_since = clock_.now();
  if (!keeps_trace) return;
  trace.push_back(
      {item.block, item.cargo, in, in && journey.is_late, journey.begin, done.end, journey.bytes});
}

void ResidencyState::use_ended(int32_t number) {
  const std::lock_guard lock(mutex_);
  if (error_) return;
  use_at(number).has_ended = true;
  if (!end_if_here(number)) ending_.push_back(number);
  carry_out();
}

/// A use ends when its copies have been reported: a stream may have seen them before.
bool ResidencyState::end_if_here(int32_t number) {
  Use& use = use_at(number);
  const bool all_here = std::ranges::all_of(
      use.needs, [&](const Need& need) { return loader_.where(need.item) == Where::here; });
  if (!all_here) return false;
  loader_.end_use(number);
  use.state = Use::State::free;
  free_uses_.push_back(number);
  return true;
}

void ResidencyState::arrived_home(ItemId item) {
  std::erase_if(homecomings_, [&](const std::shared_ptr<Homecoming>& homecoming) {
    const auto at = std::ranges::find(homecoming->items, item);
    if (at != homecoming->items.end()) {
      homecoming->items.erase(at);
      --homecoming->left;
    }
    if (homecoming->left > 0) return false;
    homecoming->event.reach();
    return true;
  });
}

/// The first error holds. Wakes everyone with it.
void ResidencyState::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (error_) return;
  error_ = std::move(error);
  for (const SlotState& slot : slots_) device_.fail(*slot.arrived, error_);
  for (const std::shared_ptr<Homecoming>& homecoming : homecomings_) {
    homecoming->event.fail(error_);
  }
  changed_.notify_all();
}

void ResidencyState::stop(std::exception_ptr reason) {
  fail(std::move(reason));
  const std::lock_guard lock(stopping_);
  if (watch_) watch_->stop();
  in_->stop();
  out_->stop();
}

}  // namespace hearth
