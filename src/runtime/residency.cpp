#include "runtime/residency.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "runtime/residency_state.h"

namespace hearth {

const LeasedBlock& Lease::of(BlockId block) const {
  const auto at = std::ranges::find(blocks, block, &LeasedBlock::block);
  HEARTH_CHECK(at != blocks.end(), "residency: a lease without the block");
  return *at;
}

Residency::Residency(Device& device, const ParameterTable& table, const SlotPlan& plan,
                     const PinnedHomes& homes, LinkClock& clock)
    : state_(std::make_unique<ResidencyState>(device, table, plan, homes, clock)) {}
Residency::~Residency() = default;

std::vector<HostRange> Residency::home_memory(const ParameterTable& table, const SlotPlan& plan) {
  const TravellingBlocks blocks(table, plan);
  std::vector<HostRange> ranges;
  for (ItemId item = 0; item < std::ssize(blocks.items()); ++item) {
    for (const HomeRange& range : blocks.home(item)) ranges.push_back({range.home, range.bytes});
  }
  return ranges;
}

void Residency::apply(const Wants& wants) { state_->apply(wants); }

void Residency::expect(BlockId block, Position next_use) {
  state_->tell_loader([&](Loader& loader) {
    state_->blocks.for_block(block, true, [&](ItemId item) { loader.expect(item, next_use); });
  });
}

void Residency::advance(Position now) {
  state_->tell_loader([&](Loader& loader) { loader.advance(now); });
}

Lease Residency::lease(std::span<const BlockId> blocks, bool with_gradient, bool is_expected) {
  return state_->lease(blocks, with_gradient, is_expected);
}

void Residency::wait(const Lease& lease, const LeasedBlock& block, Stream& stream) {
  state_->wait(lease, block, stream);
}

void Residency::wait(const Lease& lease, Stream& stream) {
  for (const LeasedBlock& block : lease.blocks) state_->wait(lease, block, stream);
}

void Residency::release(const Lease& lease, Stream& stream) { state_->release(lease, stream); }

std::shared_ptr<Event> Residency::bring_home(BlockId begin, BlockId end) {
  return state_->bring_home(begin, end);
}

void Residency::begin_change(BlockId begin, BlockId end, HomeChange change) {
  state_->begin_change(begin, end, change);
}

void Residency::changed(BlockId begin, BlockId end, HomeChange change) {
  state_->changed(begin, end, change);
}

ShrinkReport Residency::shrink(std::span<const SlotClass> classes, std::string why) {
  return state_->shrink(classes, std::move(why));
}

void Residency::stop(std::exception_ptr reason) { state_->stop(std::move(reason)); }

const SlotLayout& Residency::weights(BlockId block) const {
  return state_->blocks.layout(block, Cargo::weights);
}
const SlotLayout& Residency::gradient(BlockId block) const {
  return state_->blocks.layout(block, Cargo::gradient);
}
const TravelItems& Residency::items() const { return state_->blocks; }
bool Residency::travels(BlockId block) const { return state_->blocks.travels(block); }
ResidencyCounts Residency::counts() const {
  return state_->look([](const ResidencyState& state) { return state.counts; });
}
size_t Residency::arena_bytes() const { return state_->loader().arena_bytes(); }
size_t Residency::open_bytes() const {
  return state_->look([](const ResidencyState& state) { return state.loader().open_bytes(); });
}
Where Residency::where(BlockId block, Cargo cargo) const {
  return state_->look([&](const ResidencyState& state) {
    const ItemId item = state.blocks.find(block, cargo);
    return item >= 0 ? state.loader().where(item) : Where::home;
  });
}
void Residency::take_stays(std::span<double> by_block) { state_->take_stays(by_block); }
void Residency::keep_trace() {
  state_->tell_loader([&](Loader&) { state_->keeps_trace = true; });
}
std::vector<LoadTime> Residency::take_trace() {
  std::vector<LoadTime> taken;
  state_->tell_loader([&](Loader&) { taken.swap(state_->trace); });
  return taken;
}

}  // namespace hearth
