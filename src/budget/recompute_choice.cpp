#include "budget/recompute_choice.h"

#include <utility>

#include "budget/stage_costs.h"

namespace hearth {

namespace {

/// Saved activations of all micro-batches may leave slots for less than two stages of a pipeline. Then
/// no stage is loaded while another runs.
bool lacks_slots(const PlacedModel& placed, const PlanRequest& request) {
  if (placed.of_model.dense.size() < 2) return false;
  return !two_stages_fit(placed.plan, placed.placement.stages,
                         unit_slot_bytes(placed.table, placed.plan.policy, request.training));
}

bool may_gain(const PlacedModel& placed, const PlanRequest& request) {
  if (!request.training || request.recompute || request.group) return false;
  if (placed.of_model.travel == Travel::never || !placed.plan.fits()) return false;
  const TrainSchedule& train = *placed.plan.train;
  const bool in_groups = train.group < request.micro_batches / request.shards.count();
  return !train.recompute && (in_groups || lacks_slots(placed, request));
}

}  // namespace

PlacedModel place_fastest(TrainedModel model, const PlanRequest& request, const StepWork& work,
                          RunTables tables, const std::optional<ChosenPolicy>& policy) {
  const ComputeChoice compute = model.compute;
  PlacedModel kept =
      place_model(std::move(model), request, Rates::measured, std::move(tables), policy);
  if (!may_gain(kept, request)) return kept;
  PlanRequest again = request;
  again.recompute = true;
  TrainedModel same{kept.opened, kept.table, kept.settings, compute, kept.popularity};
  PlacedModel recomputed =
      place_model(std::move(same), again, Rates::measured, kept.tables, policy, kept.process);
  if (!recomputed.plan.fits()) return kept;
  const PlanTimes before = predict(kept, work, std::nullopt),
                  after = predict(recomputed, work, std::nullopt);
  const bool is_faster = before.known && after.known && after.step.time_s < before.step.time_s;
  return is_faster ? std::move(recomputed) : std::move(kept);
}

}  // namespace hearth
