// What plans and journals say of the places and stages of a run.
#pragma once

#include "base/json.h"
#include "budget/placed_model.h"

namespace hearth {

/// One object per place: "place", "root", "package", "nodes", "cpus", "mem_bytes", "h2d", "d2h",
/// "latency_s". Null: unknown, or no limit.
JsonArray places_json(const PlacedModel& model);

/// One object per stage, in forward order: "stage", "device", "layers" [first, last]. A stage that
/// holds the embedding or the head alone has no layer: its last is below its first.
JsonArray stages_json(const PlacedModel& model, const std::vector<Stage>& stages);

/// Fields of the journal's `placement` events. One object per stage: those of stages_json, and
/// where the device is. One per place that holds experts alone (a further NUMA node, the host
/// beside devices): "stage" is null, "holds" is "experts", "layers" are the first and the last with
/// experts there.
std::vector<JsonObject> placement_events(const PlacedModel& model, int64_t step);

/// "same" if the run gives the bits of the host alone; "bounded" if they may differ: with partial sums,
/// where places compute by different op sets, or where weights travel compressed.
const char* bits_of(const PlacedModel& model);

/// Lines for people: the cut into stages and why devices are in this order. Empty with one stage.
std::vector<std::string> stage_lines(const PlacedModel& model);
/// Why the stages are on devices in this order; empty if there was no choice.
std::string stage_order_reason(const PlacedModel& model);
/// Of a split of the experts between devices and the host: for each device with experts of its layers
/// "virtual:0 holds 37 of its 256 experts, the most used in a sample; the host holds the others".
std::vector<std::string> hot_lines(const PlacedModel& model);
/// Whether a device holds some of the experts of its layers and leaves others to the host, so that it
/// matters which are used most.
bool chooses_held_experts(const PlacedModel& model);
/// Whether each device of such a policy holds all experts of its layers.
bool holds_all_experts(const PlacedModel& model);
/// [{"device", "held", "experts" (of its layers)}]; empty unless devices take experts of the host.
JsonArray held_experts_json(const PlacedModel& model);

}  // namespace hearth
