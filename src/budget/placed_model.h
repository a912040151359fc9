// The third stage of a run: the trained model at its places, with its plan.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "budget/plan.h"
#include "budget/rank_speed.h"
#include "plan/cost_model.h"
#include "plan/zebra/zebra_forecast.h"
#include "runtime/machine_rates.h"
#include "setup/run_tables.h"

namespace hearth {

/// Measured rates of the machine.
struct RunRates {
  MachineRates best;
  CostRates costs;
};

/// What `--policy auto` became, and why.
struct ChosenPolicy {
  ModelPlaces places;
  std::string name;  // static, makespan, aptmoe, mobius
  std::string why;
  struct Candidate {
    std::string name;
    bool fits = false;
    std::optional<double> time_s = {};  // of a step; none: it does not fit, or nothing is known
  };
  std::vector<Candidate> candidates = {};  // empty: there was no need to compare
};

/// Of a run with zebra (budget/zebra_choice.h).
struct ZebraRoles {
  Plan plan;             // of the first expert rank, if it had the devices of rank 0
  ParameterTable table;  // of that rank
  /// Of each role, the first rank of each speed. Begins with rank 0.
  std::vector<RankSpeed> speeds = {};
  std::optional<ZebraForecast> forecast = {};  // none: the times of tasks are not known
};

/// Of a run with expert domains (budget/domain_choice.h).
struct DomainForecast {
  struct Candidate {
    std::vector<int32_t> domains = {};  // by level
    bool fits = false;
    std::optional<double> time_s = {};  // of a step; none: it does not fit, or nothing is known
  };
  std::vector<Candidate> candidates = {};
};

/// Made once, with its plan, by place_model.
struct PlacedModel {
  std::shared_ptr<const OpenedModel> opened;
  ModelPlaces of_model;                // those of the list, or what the policy became
  std::optional<ChosenPolicy> policy;  // none: as the options say
  Placement placement;                 // of the blocks, as the plan has them
  ParameterTable table;                // with the place of each block; not bound to memory
  RunSettings settings;
  ExpertCounts popularity;        // of a sample of the data; empty: unknown
  RunTables tables;               // of places that are not paced; empty without rates
  std::optional<RunRates> rates;  // none: not requested, or a device is too small to measure
  // When the plan was made. If every place has a cost table, in whole pieces of 4 MiB, so that equal
  // commands print equal plans.
  ProcessMemory process;
  uint64_t opening_bytes = 0;                  // the most memory that opening the model took
  std::vector<std::vector<uint8_t>> expected;  // PlanSubject::expected
  Plan plan;
  std::shared_ptr<const ZebraRoles> zebra = {};        // null: no zebra, or not chosen yet
  std::shared_ptr<const DomainForecast> domains = {};  // null: the plan chose none
};

enum class Rates : uint8_t { none, measured };

/// Places the blocks, resolves the compute type and plans the run in the current process. `tables`:
/// those that are known; with Rates::measured the others are measured (budget/run_rates.h). Measures
/// before planning, so the plan counts the memory that the measurement leaves. `policy`: what `auto`
/// became (budget/policy_choice.h). `process`: of an earlier plan of the same model; none: as it is now.
/// Then no other copies of the table should be there, which the run does not have.
PlacedModel place_model(TrainedModel model, const PlanRequest& request, Rates rates = Rates::none,
                        RunTables tables = {}, std::optional<ChosenPolicy> policy = {},
                        std::optional<ProcessMemory> process = {});

/// The same model at the same places, planned for other ranks or another schedule.
PlacedModel replanned(PlacedModel model, const PlanRequest& request);

/// The same without a plan: what is known before there is one.
PlacedModel measured_model(TrainedModel model, const PlanRequest& request, Rates rates,
                           RunTables tables);

/// For plans of the same model and process with other requests or budgets. Its places have the tables
/// that decide: of costs=, and those of the run that were not measured at a start.
PlanSubject subject_of(const PlacedModel& model);

/// The names of the places that compute, the place of the dense parts first: "devices" in plans and
/// journals.
JsonArray devices_json(const PlacedModel& model);
/// The places that experts are divided among, those of the dense parts apart: with experts at some
/// devices only (policy `static`), the places that do hold some. Empty: as the dense parts.
std::vector<Place> expert_places(const PlacedModel& model);
/// "the host with 8 workers", "cuda:0", "cuda:0, experts on the host with 8 workers".
std::string places_text(const PlacedModel& model);

}  // namespace hearth
