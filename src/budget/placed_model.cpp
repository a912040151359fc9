#include "budget/placed_model.h"

#include "base/counted.h"
#include "budget/plan_time.h"

namespace hearth {

PlacedModel place_model(TrainedModel model, const PlanRequest& request, Rates rates) {
  PlacedModel placed{
      std::move(model.opened), {}, std::move(model.table), model.settings, {}, {}, {}};
  const RunDevices& devices = placed.opened->devices;
  placed.placement = devices.placement;
  default_planner().place_blocks(placed.table, placed.placement);
  placed.settings.compute =
      resolved_compute(model.compute, placed.table, devices.places, placed.placement);
  std::optional<Error> too_small;
  if (rates == Rates::measured) {
    try {
      placed.rates = measure_run(placed, request);
    } catch (const Error& error) {
      if (error.code() != ExitCode::usage) throw;
      too_small = error;
    }
  }
  placed.process = measure_process(request.data_bytes);
  placed.plan = make_plan(subject_of(placed), request);
  // If the plan does not fit either, it says so, and what would fit.
  if (too_small && placed.plan.fits()) throw Error(*too_small);
  return placed;
}

PlanSubject subject_of(const PlacedModel& model) {
  const OpenedModel& opened = *model.opened;
  return {opened.spec,           model.settings,  model.table,
          opened.devices.places, model.placement, opened.types_basis,
          opened.opening_bytes,  opened.workers,  model.process};
}

JsonArray devices_json(const PlacedModel& model) {
  const auto name = [&](Place at) { return Json(model.opened->place(at).budget.name); };
  JsonArray names{name(model.placement.dense)};
  if (model.placement.experts != model.placement.dense) {
    names.push_back(name(model.placement.experts));
  }
  return names;
}

std::string places_text(const PlacedModel& model) {
  const auto text = [&](Place at) {
    if (at != kHostPlace) return model.opened->place(at).budget.name;
    return "the host with " + counted(model.opened->workers, "worker");
  };
  const Placement& at = model.placement;
  return text(at.dense) + (at.experts == at.dense ? "" : ", experts on " + text(at.experts));
}

}  // namespace hearth
