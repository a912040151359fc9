#include "budget/device_loads.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/arena.h"
#include "plan/loader/slot_plan.h"

namespace hearth {

/// Rows of tasks pass between two pieces, so a piece holds the link for two milliseconds, or for so long
/// that latency is 1 / 20 of it.
static size_t piece_bytes(const LinkRates& link, size_t most) {
  const auto bytes_of = [](const LinkRate& rate) {
    return rate.bytes_per_s * std::max(2e-3, 20 * rate.latency_s);
  };
  const double rate = std::max(link.in.bytes_per_s, link.out.bytes_per_s);
  if (rate <= 0) return most;
  constexpr double kLeast = 4096;
  const double bytes = std::max(bytes_of(link.in), bytes_of(link.out));
  return std::min(most, align_up(static_cast<size_t>(std::max(kLeast, bytes))));
}

namespace {

std::vector<SlotSize> sizes_at(const PlacedModel& model, Place place) {
  return slot_sizes(model.table, model.plan.policy, model.plan.schedules(), place);
}

/// The stage of each layer; empty: there is one stage.
std::vector<int32_t> stages_of_layers(const PlacedModel& model) {
  const std::vector<Stage>& stages = model.placement.stages;
  std::vector<int32_t> of;
  if (stages.size() < 2) return of;
  for (int32_t layer = 0; layer < model.opened->spec.layers; ++layer) {
    const auto at = std::ranges::find_if(
        stages, [&](const Stage& stage) { return stage.first <= layer && layer <= stage.last; });
    of.push_back(static_cast<int32_t>(at - stages.begin()));
  }
  return of;
}

/// What a device holds beside its slots.
uint64_t bytes_beside_slots(const PlacedModel& model, Place place) {
  uint64_t bytes = 0;
  for (const MemoryLine& line : model.plan.places[static_cast<size_t>(place)].lines) {
    if (line.id.use != MemoryUse::slots) bytes += line.bytes;
  }
  return bytes;
}

}  // namespace

LoadRule load_rule(const PlacedModel& model, Place place, std::span<const SlotClass> classes) {
  LoadRule rule;
  rule.wave = wave_of(sizes_at(model, place), classes);
  rule.phases = model.of_model.foresight.phases;
  if (model.of_model.travel != Travel::ahead) return rule;
  for (const SlotClass& slots : classes) {
    rule.ahead_bytes += slots.bytes * static_cast<uint64_t>(slots.slots);
  }
  if (model.of_model.decides()) rule.stages = stages_of_layers(model);
  return rule;
}

uint64_t least_budget(const PlacedModel& model, Place place) {
  return bytes_beside_slots(model, place) + least_slot_bytes(sizes_at(model, place));
}

std::vector<SlotClass> slots_within(const PlacedModel& model, Place place, uint64_t budget) {
  const uint64_t beside = bytes_beside_slots(model, place);
  std::vector<SlotClass> classes =
      slot_classes(sizes_at(model, place), budget - std::min(budget, beside));
  // A size may have more slots in a smaller budget: what a larger size cannot use is shared out.
  const std::vector<SlotClass>& planned = model.plan.slots[static_cast<size_t>(place)];
  for (size_t i = 0; i < classes.size(); ++i) {
    classes[i].slots = std::min(classes[i].slots, planned[i].slots);
  }
  return classes;
}

std::vector<DeviceLoads> device_loads(const PlacedModel& model, std::span<const LinkRates> links) {
  std::vector<DeviceLoads> devices;
  const std::vector<const Schedule*> schedules = model.plan.schedules();
  for (size_t at = 0; at < model.plan.slots.size(); ++at) {
    const std::vector<SlotClass>& classes = model.plan.slots[at];
    if (classes.empty()) continue;
    DeviceLoads& of = devices.emplace_back();
    of.place = static_cast<Place>(at);
    of.blocks = travelling_blocks(model.table, schedules, of.place);
    of.classes = classes;
    if (at < links.size()) {
      of.settings.in_bytes_per_s = std::max(1.0, links[at].in.bytes_per_s);
      of.settings.out_bytes_per_s = std::max(1.0, links[at].out.bytes_per_s);
      of.settings.piece_bytes = piece_bytes(links[at], of.settings.piece_bytes);
    }
    of.rule = load_rule(model, of.place, classes);
  }
  return devices;
}

namespace {

/// Bytes of the weights that the tasks of a device read, forward and backward.
std::array<double, 2> pass_bytes(const PlacedModel& model, const TravelItems& items, Place place) {
  std::array<std::set<ItemId>, 2> read;
  for (const Task& task : model.plan.train->schedule.tasks) {
    if (task.place != place) continue;
    for (const BlockId block : blocks_away(model.table, task)) {
      items.for_block(block, false, [&](ItemId item) {
        read[task.phase == Phase::forward ? 0 : 1].insert(item);
      });
    }
  }
  std::array<double, 2> bytes{};
  for (size_t pass = 0; pass < read.size(); ++pass) {
    for (const ItemId item : read[pass]) {
      bytes[pass] += static_cast<double>(items.item(item).layout.bytes);
    }
  }
  return bytes;
}

}  // namespace

double least_load_seconds(const PlacedModel& model, std::span<const LinkRates> links) {
  if (!model.plan.train) return 0;
  if (model.of_model.decides()) return 0;  // the host may compute all experts
  const TrainSchedule& train = *model.plan.train;
  const int64_t groups = (train.schedule.micro_batches + train.group - 1) / train.group;
  double seconds = 0;
  for (const DeviceLoads& device : device_loads(model, links)) {
    const TravelItems items(model.table, device.blocks, model.plan.policy);
    double slots = 0, trained = 0, gradients = 0;
    for (const SlotClass& of : device.classes) {
      slots += static_cast<double>(of.bytes) * of.slots;
    }
    for (ItemId id = 0; id < std::ssize(items.items()); ++id) {
      const auto bytes = static_cast<double>(items.item(id).layout.bytes);
      if (items.item(id).cargo == Cargo::gradient) {
        gradients += bytes;
      } else if (items.is_trained(id)) {
        trained += bytes;
      }
    }
    const std::array<double, 2> bytes = pass_bytes(model, items, device.place);
    const double forward = std::max(0.0, bytes[0] - slots),
                 backward = std::max(0.0, bytes[1] - slots);
    const double in = std::max(trained, forward) + backward +
                      static_cast<double>(groups - 1) * (forward + backward);
    const auto at = static_cast<size_t>(device.place);
    const LinkRates link = at < links.size() ? links[at] : LinkRates{};
    if (link.in.bytes_per_s > 0) seconds = std::max(seconds, in / link.in.bytes_per_s);
    if (link.out.bytes_per_s > 0) seconds = std::max(seconds, gradients / link.out.bytes_per_s);
  }
  return seconds;
}

}  // namespace hearth
