#include "budget/placement_report.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "plan/stage_mapping.h"

namespace hearth {

namespace {

Json known(bool condition, Json value) { return condition ? std::move(value) : Json(nullptr); }

Json package_json(const PlaceSeat& seat) {
  return seat.package ? Json(int64_t{*seat.package}) : Json(nullptr);
}

JsonArray nodes_json(const PlaceSeat& seat) {
  JsonArray nodes;
  for (const int node : seat.nodes) nodes.push_back(int64_t{node});
  return nodes;
}

/// CPUs of the compute streams that work at a place or, on the host, for a device.
JsonArray cpus_json(const PlacedModel& model, Place at) {
  JsonArray list;
  for (const int cpu : model.opened->place(at).cpus) list.push_back(int64_t{cpu});
  return list;
}

/// The layers of a stage; {n, n - 1} if it has none.
std::pair<int64_t, int64_t> layers_of(const PlacedModel& model, const Stage& stage) {
  const int64_t count = model.opened->spec.layers;
  const int64_t first = std::clamp<int64_t>(stage.first, 0, count);
  return {first, std::clamp<int64_t>(stage.last, first - 1, count - 1)};
}

/// The layers with experts at a place; {n, n - 1} if there are none.
std::pair<int64_t, int64_t> layers_with_experts(const std::vector<std::vector<Place>>& homes,
                                                Place at) {
  auto first = std::ssize(homes), last = first - 1;
  for (auto layer = std::ssize(homes); layer-- > 0;) {
    const std::vector<Place>& of = homes[static_cast<size_t>(layer)];
    if (std::find(of.begin(), of.end(), at) == of.end()) continue;
    if (first == std::ssize(homes)) last = layer;
    first = layer;
  }
  return {first, last};
}

JsonObject stage_json(const PlacedModel& model, const Stage& stage, size_t number) {
  const auto [first, last] = layers_of(model, stage);
  return {{"stage", static_cast<int64_t>(number)},
          {"device", model.opened->place(stage.place).budget.name},
          {"layers", JsonArray{first, last}}};
}

}  // namespace

JsonArray places_json(const PlacedModel& model) {
  JsonArray list;
  const std::vector<ComputePlace>& places = model.opened->devices.places;
  const int32_t hosts = model.opened->devices.hosts;
  for (size_t at = 0; at < places.size(); ++at) {
    const ComputePlace& place = places[at];
    const LinkRates links = place.device->link_rates().value_or(LinkRates{});
    uint64_t memory = place.budget.bytes;
    if (hosts > 1 && at == kHostPlace &&
        place.seat.memory > 0) {  // whose budget is that of all nodes
      memory = std::min(memory, place.seat.memory);
    }
    list.push_back(JsonObject{
        {"place", place.budget.name},
        {"root", known(!place.seat.root.empty(), place.seat.root)},
        {"package", package_json(place.seat)},
        {"nodes", nodes_json(place.seat)},
        {"cpus", cpus_json(model, static_cast<Place>(at))},
        {"mem_bytes", known(memory < std::numeric_limits<uint64_t>::max(), Json(memory))},
        {"h2d", known(links.in.bytes_per_s > 0, links.in.bytes_per_s)},
        {"d2h", known(links.out.bytes_per_s > 0, links.out.bytes_per_s)},
        {"latency_s", std::max(links.in.latency_s, links.out.latency_s)}});
  }
  return list;
}

JsonArray stages_json(const PlacedModel& model, const std::vector<Stage>& stages) {
  JsonArray list;
  for (size_t s = 0; s < stages.size(); ++s) list.push_back(stage_json(model, stages[s], s));
  return list;
}

std::vector<JsonObject> placement_events(const PlacedModel& model, int64_t step) {
  std::vector<JsonObject> events;
  const auto add_at = [&](Place at, JsonObject what) {
    const PlaceSeat& seat = model.opened->place(at).seat;
    JsonObject event{{"step", step}};
    for (auto& field : what) event.push_back(std::move(field));
    event.emplace_back("root", known(!seat.root.empty(), seat.root));
    event.emplace_back("package", package_json(seat));
    event.emplace_back("nodes", nodes_json(seat));
    event.emplace_back("cpus", cpus_json(model, at));
    events.push_back(std::move(event));
  };
  const auto add = [&](const Stage& stage, size_t number, bool backward) {
    JsonObject what = stage_json(model, stage, number);
    if (backward) what.emplace_back("phase", "backward");
    add_at(stage.place, std::move(what));
  };
  const Placement& placement = model.placement;
  for (size_t s = 0; s < placement.stages.size(); ++s) add(placement.stages[s], s, false);
  for (size_t s = 0; s < placement.backward.size(); ++s) add(placement.backward[s], s, true);
  const std::vector<std::vector<Place>> homes = homes_of(model.opened->spec, placement);
  for (const Place at : expert_places(model)) {
    const auto is_there = [&](const Stage& stage) { return stage.place == at; };
    if (std::ranges::any_of(placement.stages, is_there)) continue;
    const auto [first, last] = layers_with_experts(homes, at);
    add_at(at, {{"stage", nullptr},
                {"device", model.opened->place(at).budget.name},
                {"layers", JsonArray{first, last}},
                {"holds", "experts"}});
  }
  return events;
}

namespace {

struct HeldExperts {
  Place device = kHostPlace;
  int64_t held = 0, of = 0;
};

/// By device: how many of the experts of its stages it holds.
std::vector<HeldExperts> held_experts(const PlacedModel& model) {
  std::vector<HeldExperts> list;
  if (!model.of_model.hot) return list;
  const ModelSpec& spec = model.opened->spec;
  for (const Stage& stage : model.placement.stages) {
    const auto known = std::ranges::find(list, stage.place, &HeldExperts::device);
    HeldExperts& device =
        known != list.end() ? *known : list.emplace_back(HeldExperts{stage.place});
    for (const LayerExpert& e : hottest_first(spec, stage, {})) {
      ++device.of;
      device.held += model.placement.expert(e.layer, e.expert, spec.experts) == stage.place;
    }
  }
  return list;
}

}  // namespace

bool chooses_held_experts(const PlacedModel& model) {
  const std::vector<HeldExperts> list = held_experts(model);
  return std::any_of(list.begin(), list.end(),
                     [](const HeldExperts& of) { return of.held > 0 && of.held < of.of; });
}

bool holds_all_experts(const PlacedModel& model) {
  const std::vector<HeldExperts> list = held_experts(model);
  return !list.empty() &&
         std::ranges::all_of(list, [](const HeldExperts& of) { return of.held == of.of; });
}

JsonArray held_experts_json(const PlacedModel& model) {
  JsonArray list;
  for (const HeldExperts& of : held_experts(model)) {
    list.push_back(JsonObject{{"device", model.opened->place(of.device).budget.name},
                              {"held", of.held},
                              {"experts", of.of}});
  }
  return list;
}

std::vector<std::string> hot_lines(const PlacedModel& model) {
  std::vector<std::string> lines;
  for (const HeldExperts& of : held_experts(model)) {
    std::string line = model.opened->place(of.device).budget.name + " holds " +
                       std::to_string(of.held) + " of the " + std::to_string(of.of) +
                       " experts of its layers";
    if (of.held > 0 && of.held < of.of) {
      line += model.popularity.empty() ? ", those with the lowest numbers until a sample is counted"
                                       : ", the most used in a sample of the data";
    }
    lines.push_back(line + (of.held < of.of ? "; the host holds the others" : ""));
  }
  return lines;
}

const char* bits_of(const PlacedModel& model) {
  const OpSet* host = model.opened->place(kHostPlace).ops;
  const std::vector<Place> all = model.placement.places();
  const bool same = std::all_of(all.begin(), all.end(),
                                [&](Place at) { return model.opened->place(at).ops == host; });
  const bool divides = model.of_model.divides_experts();
  const bool wired = model.plan.shards.wire.compresses();
  return same && !model.settings.partial_sums && !divides && !wired ? "same" : "bounded";
}

std::vector<std::string> stage_lines(const PlacedModel& model) {
  std::vector<std::string> lines;
  const std::vector<Stage>& stages = model.placement.stages;
  if (stages.size() < 2) return lines;
  const auto layers = static_cast<int32_t>(model.opened->spec.layers);
  const auto add_line = [&](const Stage& stage, const std::string& name) {
    const auto [first, last] = layers_of(model, stage);
    std::string holds = stage.first < 0 ? "embedding" : "";
    const auto add = [&](const std::string& text) { holds += (holds.empty() ? "" : ", ") + text; };
    if (first == last) add("layer " + std::to_string(first));
    if (first < last) add("layers " + std::to_string(first) + " to " + std::to_string(last));
    if (stage.last >= layers) add("head");
    const auto is_there = [&](const Stage& other) { return other.place == stage.place; };
    if (stage.last < 0 && model.opened->spec.tied_head &&
        std::ranges::count_if(stages, is_there) == 1) {
      holds = "nothing, as the embedding is with the head; the device may be left out";
    }
    lines.push_back(name + " on " + model.opened->place(stage.place).budget.name + ": " + holds);
  };
  for (size_t s = 0; s < stages.size(); ++s) add_line(stages[s], "stage " + std::to_string(s));
  const std::vector<Stage>& backward = model.placement.backward;
  for (size_t s = 0; s < backward.size(); ++s) {
    add_line(backward[s], "stage " + std::to_string(s) + " of backward");
  }
  if (const std::string reason = stage_order_reason(model); !reason.empty()) {
    lines.push_back("order of the devices: " + reason);
  }
  return lines;
}

std::string stage_order_reason(const PlacedModel& model) {
  const RunDevices& devices = model.opened->devices;
  if (devices.mapped.empty()) return {};
  std::vector<int> order;
  for (const Place place : devices.of_model.dense) order.push_back(place - devices.hosts);
  return reason_of_order(devices.mapped, order, static_cast<int>(model.placement.stages.size()));
}

}  // namespace hearth
