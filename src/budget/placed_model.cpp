#include "budget/placed_model.h"

#include <algorithm>

#include "base/arena.h"
#include "base/counted.h"
#include "budget/decided_splits.h"
#include "budget/placement_plan.h"
#include "budget/plan_time.h"
#include "budget/schedule_memory.h"
#include "runtime/shared_parameters.h"

namespace hearth {

/// One stage at each place, until the cut is known.
static std::vector<Stage> stages_at(const std::vector<Place>& places) {
  std::vector<Stage> stages;
  for (const Place place : places) stages.push_back({.place = place});
  return stages;
}

/// Up to whole MiB: what opening a model takes differs by less than 0.1 MB from start to start.
static uint64_t in_pieces(uint64_t bytes) { return align_up(bytes, size_t{1} << 20); }

/// Of the places that compute.
static bool all_have_tables(const PlacedModel& model) {
  const std::vector<Place> computing = model.of_model.all();
  return std::all_of(computing.begin(), computing.end(),
                     [&](Place at) { return model.opened->place(at).costs != nullptr; });
}

/// `too_small`: why a device could not be measured.
static PlacedModel measured_model(TrainedModel model, const PlanRequest& request, Rates rates,
                                  RunTables tables, std::optional<ChosenPolicy> policy,
                                  std::optional<Error>& too_small) {
  PlacedModel placed{};
  placed.opened = std::move(model.opened);
  const RunDevices& devices = placed.opened->devices;
  placed.of_model = policy ? policy->places : devices.of_model;
  placed.policy = std::move(policy);
  placed.table = std::move(model.table);
  placed.settings = model.settings;
  placed.popularity = std::move(model.popularity);
  placed.tables = std::move(tables);
  own_blocks(placed.table, request.shards);
  // What computes where, for the measurement. The plan decides which layers.
  placed.placement = Placement(stages_at(placed.of_model.dense), placed.of_model.experts);
  placed.settings.compute =
      resolved_compute(model.compute, placed.table, devices.places, placed.of_model);
  if (rates == Rates::measured) {
    try {
      placed.rates = measure_run(placed, request);
    } catch (const Error& error) {
      if (error.code() != ExitCode::usage) throw;
      too_small = error;
    }
  }
  return placed;
}

PlacedModel measured_model(TrainedModel model, const PlanRequest& request, Rates rates,
                           RunTables tables) {
  std::optional<Error> too_small;
  return measured_model(std::move(model), request, rates, std::move(tables), {}, too_small);
}

PlacedModel place_model(TrainedModel model, const PlanRequest& request, Rates rates,
                        RunTables tables, std::optional<ChosenPolicy> policy,
                        std::optional<ProcessMemory> process) {
  std::optional<Error> too_small;
  PlacedModel placed = measured_model(std::move(model), request, rates, std::move(tables),
                                      std::move(policy), too_small);
  if (!process) {
    process = placed.opened->described ? usual_process(placed.table, request.data_bytes)
                                       : measure_process(request.data_bytes);
  }
  placed.process = *process;
  placed.opening_bytes = placed.opened->opening_bytes;
  if (!request.own_process && all_have_tables(placed)) {  // equal plans print equal numbers
    placed.process.program = repeatable_program_bytes(placed.process);
    placed.opening_bytes = in_pieces(placed.opening_bytes);
  }
  placed.expected = expected_splits(placed, request);
  const auto take = [&](PlacementPlan found) {
    placed.placement = std::move(found.placement);
    placed.table = std::move(found.table);
    placed.plan = std::move(found.plan);
  };
  take(plan_placement(subject_of(placed), request));
  if (placed.of_model.decides() && placed.plan.fits()) {  // with the slots of this plan
    PlanSubject subject = subject_of(placed);
    subject.expected = expected_splits(placed, request);
    PlacementPlan found = plan_placement(subject, request);
    if (found.plan.fits()) {
      placed.expected = std::move(subject.expected);
      take(std::move(found));
    }
  }
  if (placed.rates && placed.plan.train && !rates_are_assumed()) {
    // A bound is what nothing here passes, tasks of the tables included.
    const MachineRates shown = shown_rates(placed);
    MachineRates& best = placed.rates->best;
    best.flops_per_s = std::max(best.flops_per_s, shown.flops_per_s);
    best.update_params_per_s = std::max(best.update_params_per_s, shown.update_params_per_s);
  }
  // If the plan does not fit either, it says so, and what would fit.
  if (too_small && placed.plan.fits()) throw Error(*too_small);
  return placed;
}

PlacedModel replanned(PlacedModel model, const PlanRequest& request) {
  own_blocks(model.table, request.shards);
  if (model.rates) {
    model.rates->costs.ranks.shards = request.shards;
    model.rates->costs.ranks.owners = owners_of(model.table, request.shards);
  }
  PlacementPlan planned = plan_placement(subject_of(model), request);
  model.placement = std::move(planned.placement);
  model.table = std::move(planned.table);
  model.plan = std::move(planned.plan);
  return model;
}

PlanSubject subject_of(const PlacedModel& model) {
  const OpenedModel& opened = *model.opened;
  std::vector<ComputePlace> places = opened.devices.places;
  for (ComputePlace& place : places) {
    const RunTable* table = model.tables.find(place.budget.name);
    if (!place.costs && table != nullptr && table->decides()) place.costs = table->table;
  }
  return {opened.spec,
          model.settings,
          model.table,
          std::move(places),
          opened.devices.hosts,
          model.of_model,
          opened.devices.planner,
          opened.types_basis,
          model.opening_bytes,
          opened.workers,
          model.process,
          model.popularity,
          model.expected};
}

JsonArray devices_json(const PlacedModel& model) {
  JsonArray names;
  for (const Place at : model.placement.places()) {
    names.push_back(Json(model.opened->place(at).budget.name));
  }
  return names;
}

std::vector<Place> expert_places(const PlacedModel& model) {
  const Placement& placement = model.placement;
  if (placement.homes.empty()) return placement.experts;
  std::vector<Place> places;
  for (const Place at : placement.places()) {
    const bool holds =
        std::any_of(placement.homes.begin(), placement.homes.end(), [&](const auto& layer) {
          return std::find(layer.begin(), layer.end(), at) != layer.end();
        });
    if (holds) places.push_back(at);
  }
  return places;
}

std::string places_text(const PlacedModel& model) {
  const auto text = [&](Place at) {
    if (at != kHostPlace) return model.opened->place(at).budget.name;
    return "the host with " + counted(workers_of(model.opened->place(kHostPlace)), "worker");
  };
  std::string dense, experts;
  for (const Stage& stage : model.placement.stages) {
    dense += (dense.empty() ? "" : ", ") + text(stage.place);
  }
  for (const Place at : expert_places(model)) {
    experts += (experts.empty() ? ", experts on " : ", ") + text(at);
  }
  return dense + experts;
}

}  // namespace hearth
