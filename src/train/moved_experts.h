// Devices keep the most used experts while the use changes (--policy static).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "budget/placed_model.h"
#include "modes/hot_experts.h"

namespace hearth {

/// Exchanges two experts of a layer, and their adapters, by a function of two blocks.
void exchange_experts(ParameterTable& table, const ExpertSwap& swap,
                      const std::function<void(ParameterTable&, BlockId, BlockId)>& exchange);

/// The tokens of experts by layer, of counts that are those of the layers with experts alone.
ExpertCounts by_layer(const ModelSpec& spec, const std::vector<std::vector<double>>& counts);

/// Whether a device holds some of the experts of its layers, and may hold others.
bool may_move_experts(const PlacedModel& model);

/// A move of experts between devices and the host.
struct MovedExperts {
  std::vector<ExpertSwap> swaps;       // never empty
  double share_before = 0, share = 0;  // of the counted tokens: whose experts are at devices
  Placement placement;
  Plan plan;  // its schedules alone
};

/// What the counts ask for (swaps_to_hotter). `bound`: the model's table as it is bound to memory; experts
/// of different memory stay. nullopt: nothing moves, or the schedules would need more memory.
std::optional<MovedExperts> moved_experts(const PlacedModel& model, const PlanRequest& request,
                                          const ParameterTable& bound, const ExpertCounts& counts);

/// The model, whose experts have moved.
void take_moved(PlacedModel& model, MovedExperts&& moved);

}  // namespace hearth
