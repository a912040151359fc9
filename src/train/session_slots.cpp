// What moves between places: the slots of devices to which weights travel, made before step 1, fewer
// when a budget falls; and experts that exchange their places.
#include <algorithm>

#include "budget/device_loads.h"
#include "model/parameter_memory.h"
#include "train/moved_experts.h"
#include "train/session.h"

namespace hearth {

namespace {

/// What a GPU needs beside the budget while it runs: the driver and libraries load code when it is first
/// used.
constexpr uint64_t kFreeBytes = uint64_t{256} << 20;

}  // namespace

std::vector<LinkRates> Session::link_rates() const {
  std::vector<LinkRates> links;
  for (const PlaceParts& of : parts_) {
    links.push_back(of.device.link_rates().value_or(LinkRates{}));
  }
  return links;
}

void Session::make_residency(const DeviceLoads& loads) {
  PlaceParts& of = parts_[static_cast<size_t>(loads.place)];
  auto& residency = residencies_[static_cast<size_t>(loads.place)];
  const SlotPlan plan{loads.blocks, plan_.policy, loads.classes, loads.settings};
  residency = std::make_unique<Residency>(of.device, table_, plan, *homes_);
  residency->keep_trace();
  of.residency = residency.get();
  of.loads = loads.rule;
}

void Session::make_residencies() {
  residencies_.resize(parts_.size());
  slots_ = plan_.slots;
  const std::vector<DeviceLoads> loads = device_loads(model_, link_rates());
  if (loads.empty()) return;
  std::vector<HostRange> ranges;
  for (const DeviceLoads& device : loads) {
    const std::vector<HostRange> of = Residency::home_memory(
        table_, {device.blocks, plan_.policy, device.classes, device.settings});
    ranges.insert(ranges.end(), of.begin(), of.end());
  }
  homes_ = std::make_unique<PinnedHomes>(parts_[static_cast<size_t>(loads.front().place)].device,
                                         ranges);
  for (const DeviceLoads& device : loads) {
    make_residency(device);
    Device& of = parts_[static_cast<size_t>(device.place)].device;
    if (const auto free = of.free_bytes()) free_at_start_[device.place] = *free;
  }
}

std::vector<double> Session::take_shares(double seconds) {
  const ModelPlaces& places = model_.of_model;
  if (places.travel == Travel::never && !places.hot) return {};
  std::vector<double> stays(table_.blocks().size());  // on devices
  for (const auto& residency : residencies_) {
    if (residency) residency->take_stays(stays);
  }
  std::vector<double> here(static_cast<size_t>(opened_.spec.layers)), all(here.size());
  for (BlockId b = 0; b < std::ssize(table_.blocks()); ++b) {
    const Block& block = table_.block(b);
    if (block.layer < 0) continue;
    double size = 0;
    for (TensorId id = block.begin; id < block.end; ++id) {
      size += static_cast<double>(table_.tensor(id).size());
    }
    const bool lives_there = block.place >= opened_.devices.hosts;
    const double stay = lives_there ? seconds : std::min(seconds, stays[static_cast<size_t>(b)]);
    here[static_cast<size_t>(block.layer)] += size * stay;
    all[static_cast<size_t>(block.layer)] += size * seconds;
  }
  for (size_t layer = 0; layer < here.size(); ++layer) {
    if (all[layer] > 0) here[layer] /= all[layer];
  }
  return here;
}

std::vector<BlockCopy> Session::take_block_copies(double start) {
  std::vector<BlockCopy> copies;
  for (size_t at = 0; at < residencies_.size(); ++at) {
    if (!residencies_[at]) continue;
    const auto device = static_cast<Place>(at);
    for (const LoadTime& time : residencies_[at]->take_trace()) {
      if (time.bytes == 0) continue;  // cleared there
      copies.push_back({time.block, time.cargo == Cargo::gradient, time.in ? kHostPlace : device,
                        time.in ? device : kHostPlace, std::max(0.0, time.begin - start),
                        std::max(0.0, time.end - start), time.bytes});
    }
  }
  return copies;
}

void Session::add_rank_copies(double start) {
  for (BlockCopy copy : shared_->take_copies()) {
    copy.begin = std::max(0.0, copy.begin - start);
    copy.end = std::max(0.0, copy.end - start);
    block_copies_.push_back(copy);
  }
}

double Session::late_loads() const {
  double sum = 0;
  for (const auto& residency : residencies_) {
    if (residency) sum += residency->counts().late_load_s;
  }
  return sum;
}

std::vector<ShrunkDevice> Session::shrink_devices(int64_t step) {
  std::vector<ShrunkDevice> shrunk;
  for (size_t at = 0; at < parts_.size(); ++at) {
    const auto& drop = opened_.devices.places[at].shrink;
    const auto place = static_cast<Place>(at);
    if (drop && step >= drop->step && shrunk_.insert(place).second) {
      shrunk.push_back(
          shrink(place, drop->bytes,
                 "shrink=" + std::to_string(drop->step) + ":" + std::to_string(drop->bytes)));
    } else if (const auto budget = budget_beside_others(place)) {
      shrunk.push_back(shrink(place, *budget, "other programs have taken memory"));
    }
  }
  // Executors lease as many experts at one time as the slots had room for when they were made.
  if (!shrunk.empty()) make_executors();
  return shrunk;
}

std::optional<uint64_t> Session::budget_beside_others(Place at) {
  const auto start = free_at_start_.find(at);
  if (start == free_at_start_.end()) return std::nullopt;
  const uint64_t free = *parts_[static_cast<size_t>(at)].device.free_bytes(),
                 wanted = std::min(kFreeBytes, start->second);
  const uint64_t has = device_bytes_[opened_.place(at).budget.name],
                 least = least_budget(model_, at);
  if (free >= wanted / 2 || has <= least) return std::nullopt;  // half: not at every little change
  return std::max(least, has - std::min(has, wanted - free));
}

void Session::make_smaller(Place at, const std::vector<SlotClass>& classes) {
  for (auto* executor : {&train_, &drain_, &eval_, &decode_}) executor->reset();
  residencies_[static_cast<size_t>(at)].reset();
  for (DeviceLoads& device : device_loads(model_, link_rates())) {
    if (device.place != at) continue;
    device.classes = classes;
    make_residency(device);
  }
}

ShrunkDevice Session::shrink(Place at, uint64_t budget, std::string why) {
  const size_t index = static_cast<size_t>(at);
  ShrunkDevice shrunk;
  shrunk.device = opened_.place(at).budget.name;
  shrunk.budget = budget;
  shrunk.needed = least_budget(model_, at);
  shrunk.dropped.why = std::move(why);
  Residency* const residency = residencies_[index].get();
  if (residency == nullptr) return shrunk;
  const std::vector<SlotClass> left = slots_within(model_, at, std::max(budget, shrunk.needed));
  shrunk.dropped = residency->shrink(left, std::move(shrunk.dropped.why));
  if (free_at_start_.contains(at)) make_smaller(at, left);
  for (size_t i = 0; i < left.size(); ++i) {
    shrunk.slots += slots_[index][i].slots - left[i].slots;
  }
  slots_[index] = left;
  device_bytes_[shrunk.device] -= shrunk.dropped.slot_bytes;
  parts_[index].loads = load_rule(model_, at, left);
  return shrunk;
}

void Session::swap_experts(std::span<const ExpertSwap> swaps, const std::function<void()>& replan) {
  HEARTH_CHECK(!due_, "session: experts move before updates that are due");
  for (auto* executor : {&train_, &drain_, &eval_, &decode_}) executor->reset();
  for (const ExpertSwap& swap : swaps) exchange_experts(table_, swap, exchange_memory);
  replan();
  make_executors();
}

}  // namespace hearth
