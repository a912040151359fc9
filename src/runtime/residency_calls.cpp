// What callers of a residency ask for.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "runtime/residency_state.h"

namespace hearth {

void ResidencyState::apply(const Wants& wants) {
  tell_loader([&](Loader& loader) {
    for (const BlockId block : wants.drop) {
      blocks.for_block(block, true, [&](ItemId item) {
        if (loader.remove(item)) ++counts.taken_back;
      });
    }
    for (const BlockWant& want : wants.load) {
      blocks.for_block(want.block, want.with_gradient, [&](ItemId item) {
        loader.want({item, want.priority, want.rank});
      });
    }
  });
}

void ResidencyState::add_to(Use& use, BlockId block, bool with_gradient) {
  const ItemId weights = blocks.find(block, Cargo::weights);
  const ItemId gradient = with_gradient ? blocks.find(block, Cargo::gradient) : -1;
  HEARTH_CHECK(blocks.travels(block), "residency: a block that does not travel is leased");
  LeasedBlock& leased = use.blocks.emplace_back();
  leased.block = block;
  if (weights >= 0) use.needs.push_back({weights, UseAccess::read});
  if (gradient >= 0) use.needs.push_back({gradient, UseAccess::write});
  // Until the lease is given, the pointers only say what was asked for.
  leased.gradient = gradient >= 0 ? arena_->data() : nullptr;
  if (weights < 0 || !blocks.is_expert(weights)) return;
  ++counts.expert_leases;
  if (loader_.where(weights) == Where::here) ++counts.expert_hits;
}

Lease ResidencyState::lease(std::span<const BlockId> asked, bool with_gradient, bool is_expected) {
  std::unique_lock lock(mutex_);
  const double begin = clock_.now();
  bool waited = false;
  const auto wait_for = [&](const auto& holds) {
    waited = waited || !(error_ || holds());
    changed_.wait(lock, [&] { return error_ || holds(); });
    raise();
  };
  wait_for([&] { return !free_uses_.empty(); });
  const int32_t number = free_uses_.back();
  free_uses_.pop_back();
  Use& use = use_at(number);
  use.needs.clear();
  use.blocks.clear();
  try {
    for (const BlockId block : asked) add_to(use, block, with_gradient);
    for (const BlockId block : asked) {
      if (const auto adapter = blocks.adapter_of(block)) add_to(use, *adapter, with_gradient);
    }
    use.state = Use::State::waiting;
    loader_.demand(number, use.needs, Start::issued);
  } catch (...) {  // a caller's mistake: nothing has changed
    use.state = Use::State::free;
    free_uses_.push_back(number);
    throw;
  }
  carry_out();
  wait_for([&] { return use.state == Use::State::woken; });
  for (LeasedBlock& block : use.blocks) fill(block);
  if (waited) {
    const double stalled = clock_.now() - begin;
    counts.stall_s += stalled;
    if (is_expected) counts.late_load_s += stalled;
  }
  return {number, use.blocks, is_expected};
}

/// Where a block is that the loader has given.
void ResidencyState::fill(LeasedBlock& block) {
  const bool with_gradient = block.gradient != nullptr;
  uint64_t latest = 0;
  block.ready = nullptr;
  const auto address = [&](Cargo cargo) -> std::byte* {
    const ItemId item = blocks.find(block.block, cargo);
    if (item < 0) return nullptr;
    if (cargo == Cargo::weights) check_version(item);
    Journey& journey = journey_of(item);
    const SlotState& slot = slots_[static_cast<size_t>(journey.slot)];
    if (loader_.where(item) != Where::here) {
      journey.is_late = true;
      if (slot.order > latest) block.ready = slot.arrived.get();  // the lane keeps the order
      latest = std::max(latest, slot.order);
    }
    return slot_of(item);
  };
  block.weights = address(Cargo::weights);
  block.gradient = with_gradient ? address(Cargo::gradient) : nullptr;
}

/// The copy must be of the newest home.
void ResidencyState::check_version(ItemId item) {
  HEARTH_CHECK(blocks.home_version(item) == journey_of(item).home_version,
               "residency: a stale copy is leased, since a home changed unannounced: block " +
                   std::to_string(blocks.item(item).block));
}

void ResidencyState::wait(const Lease& lease, const LeasedBlock& block, Stream& stream) {
  if (block.ready == nullptr) return;
  const double begin = clock_.now();
  device_.wait(stream, *block.ready);
  const double stalled = clock_.now() - begin;
  const std::lock_guard lock(mutex_);
  raise();
  counts.stall_s += stalled;
  if (lease.is_expected) counts.late_load_s += stalled;
}

void ResidencyState::release(const Lease& lease, Stream& stream) {
  {
    const std::lock_guard lock(mutex_);
    if (error_) return;
    Use& use = use_at(lease.number);
    HEARTH_CHECK(use.state == Use::State::woken, "residency: a lease is released twice");
    use.state = Use::State::released;
    use.has_ended = false;
    use.passed->reset();
    device_.record(*use.passed, stream);
    if (watch_) return watch_->push(lease.number, *use.passed);
  }
  use_ended(lease.number);
}

std::shared_ptr<Event> ResidencyState::bring_home(BlockId begin, BlockId end) {
  const auto homecoming = std::make_shared<Homecoming>();
  tell_loader([&](Loader& loader) {
    for_items(begin, end, HomeChange::accumulated, [&](ItemId item) {
      homecoming->items.push_back(item);
      ++homecoming->left;
    });
    homecomings_.push_back(homecoming);
    for (const ItemId item : homecoming->items) loader.bring_home(item);
    if (homecoming->left == 0) arrived_home(TravellingBlocks::kNone);
  });
  return {homecoming, &homecoming->event};
}

void ResidencyState::begin_change(BlockId begin, BlockId end, HomeChange change) {
  std::unique_lock lock(mutex_);
  const auto any = [&](const auto& holds) {
    bool found = false;
    for_items(begin, end, change, [&](ItemId item) { found = found || holds(item); });
    return found;
  };
  // Leases that were released have to end on the device, too.
  for (const Use& use : uses_) {
    if (use.state != Use::State::woken) continue;
    const auto is_of_use = [&](ItemId item) {
      return std::ranges::find(use.needs, item, &Need::item) != use.needs.end();
    };
    HEARTH_CHECK(!any(is_of_use), "residency: a home changes while its block is leased");
  }
  changed_.wait(lock,
                [&] { return error_ || !any([&](ItemId item) { return loader_.is_held(item); }); });
  raise();
  for_items(begin, end, change, [&](ItemId item) { loader_.begin_update(item); });
  carry_out();
  changed_.wait(
      lock, [&] { return error_ || !any([&](ItemId item) { return loader_.reads_home(item); }); });
  raise();
}

void ResidencyState::changed(BlockId begin, BlockId end, HomeChange change) {
  tell_loader([&](Loader& loader) {
    for_items(begin, end, change, [&](ItemId item) {
      loader.updated(item,
                     change == HomeChange::updated && blocks.item(item).cargo == Cargo::gradient);
    });
  });
}

void ResidencyState::take_stays(std::span<double> by_block) {
  const std::lock_guard lock(mutex_);
  raise();
  const double now = clock_.now();
  for (size_t i = 0; i < journeys_.size(); ++i) {
    Journey& journey = journeys_[i];
    const TravelItem& item = blocks.item(static_cast<ItemId>(i));
    if (item.cargo != Cargo::weights) continue;
    if (journey.here_since) journey.here_s += now - std::exchange(*journey.here_since, now);
    by_block[static_cast<size_t>(item.block)] += std::exchange(journey.here_s, 0);
  }
}

ShrinkReport ResidencyState::shrink(std::span<const SlotClass> classes, std::string why) {
  std::unique_lock lock(mutex_);
  raise();
  HEARTH_CHECK(!shrink_, "residency: two budgets at one time");
  std::vector<int32_t> slots;
  for (const SlotClass& of : classes) slots.push_back(of.slots);
  const size_t before = loader_.open_bytes();
  shrink_.emplace().why = std::move(why);
  is_shrunk_ = false;
  loader_.shrink(slots);
  carry_out();
  changed_.wait(lock, [&] { return error_ || is_shrunk_; });
  ShrinkReport report = *std::exchange(shrink_, std::nullopt);
  report.slot_bytes = before - report.open_bytes;
  raise();
  return report;
}

}  // namespace hearth
