// The third stage of a run: the trained model at its places, with its plan.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/json.h"
#include "budget/plan.h"
#include "plan/cost_model.h"
#include "runtime/machine_rates.h"

namespace hearth {

/// What the machine reaches.
struct RunRates {
  MachineRates best;
  CostRates costs;
};

/// Made once, with its plan, by place_model.
struct PlacedModel {
  std::shared_ptr<const OpenedModel> opened;
  Placement placement;
  ParameterTable table;  // its blocks are at their places; not bound to memory
  RunSettings settings;
  std::optional<RunRates> rates;  // none: not asked for, or a device is too small to be measured
  ProcessMemory process;          // when the plan was made
  Plan plan;
};

enum class Rates : uint8_t { none, measured };

/// Places the blocks, resolves the compute type and plans the run with the process as it is. Rates
/// are measured before the plan is made, because the process then holds what the measurement leaves.
PlacedModel place_model(TrainedModel model, const PlanRequest& request, Rates rates = Rates::none);

/// For plans of the same model and process with other requests or budgets.
PlanSubject subject_of(const PlacedModel& model);

/// The names of the places that the run computes at, that of its dense parts first: "devices" of
/// plans and journals.
JsonArray devices_json(const PlacedModel& model);
/// "the host with 8 workers", "cuda:0", "cuda:0, experts on the host with 8 workers".
std::string places_text(const PlacedModel& model);

}  // namespace hearth
