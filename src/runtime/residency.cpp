#include "runtime/residency.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "runtime/residency_impl.h"

namespace hearth {

const LeasedBlock& Lease::of(BlockId block) const {
  const auto at = std::ranges::find(blocks, block, &LeasedBlock::block);
  HEARTH_CHECK(at != blocks.end(), "residency: a lease without the block");
  return *at;
}

Residency::Residency(Device& device, const ParameterTable& table, const SlotPlan& plan,
                     const PinnedHomes& homes, LinkClock& clock)
    : impl_(std::make_unique<Impl>(device, table, plan, homes, clock)) {}
Residency::~Residency() = default;

std::vector<HostRange> Residency::home_memory(const ParameterTable& table, const SlotPlan& plan) {
  const TravellingBlocks blocks(table, plan);
  std::vector<HostRange> ranges;
  for (const TravelItem& item : blocks.items()) {
    for (const HomeRange& range : item.home) ranges.push_back({range.home, range.bytes});
  }
  return ranges;
}

void Residency::apply(const Wants& wants) { impl_->apply(wants); }

void Residency::expect(BlockId block, Position next_use) {
  impl_->tell_loader([&](Loader& loader) {
    const ItemId item = impl_->blocks.find(block, Cargo::weights);
    if (item >= 0) loader.expect(item, next_use);
  });
}

void Residency::advance(Position now) {
  impl_->tell_loader([&](Loader& loader) { loader.advance(now); });
}

Lease Residency::lease(std::span<const BlockId> blocks, bool with_gradient, bool is_expected) {
  return impl_->lease(blocks, with_gradient, is_expected);
}

void Residency::wait(const Lease& lease, const LeasedBlock& block, Stream& stream) {
  impl_->wait(lease, block, stream);
}

void Residency::wait(const Lease& lease, Stream& stream) {
  for (const LeasedBlock& block : lease.blocks) impl_->wait(lease, block, stream);
}

void Residency::release(const Lease& lease, Stream& stream) { impl_->release(lease, stream); }

std::shared_ptr<Event> Residency::bring_home(BlockId begin, BlockId end) {
  return impl_->bring_home(begin, end);
}

void Residency::begin_change(BlockId begin, BlockId end, HomeChange change) {
  impl_->begin_change(begin, end, change);
}

void Residency::changed(BlockId begin, BlockId end, HomeChange change) {
  impl_->changed(begin, end, change);
}

ShrinkReport Residency::shrink(size_t budget, std::string why) {
  return impl_->shrink(budget, std::move(why));
}

void Residency::stop(std::exception_ptr reason) { impl_->stop(std::move(reason)); }

const SlotLayout& Residency::weights(BlockId block) const {
  return impl_->blocks.layout(block, Cargo::weights);
}
const SlotLayout& Residency::gradient(BlockId block) const {
  return impl_->blocks.layout(block, Cargo::gradient);
}
bool Residency::travels(BlockId block) const { return impl_->blocks.travels(block); }
ResidencyCounts Residency::counts() const {
  return impl_->look([](const Impl& impl) { return impl.counts; });
}
size_t Residency::arena_bytes() const { return impl_->loader().arena_bytes(); }
size_t Residency::open_bytes() const {
  return impl_->look([](const Impl& impl) { return impl.loader().open_bytes(); });
}
Where Residency::where(BlockId block, Cargo cargo) const {
  return impl_->look([&](const Impl& impl) {
    const ItemId item = impl.blocks.find(block, cargo);
    return item >= 0 ? impl.loader().where(item) : Where::home;
  });
}
void Residency::keep_trace() {
  impl_->tell_loader([&](Loader&) { impl_->keeps_trace = true; });
}
std::vector<LoadTime> Residency::take_trace() {
  std::vector<LoadTime> taken;
  impl_->tell_loader([&](Loader&) { taken.swap(impl_->trace); });
  return taken;
}

}  // namespace hearth
