// The plan for people and as JSON.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "budget/plan_changes.h"
#include "budget/plan_time.h"

namespace hearth {

/// The plan that `train` would run: whether it fits, memory, schedule, lower bound of the time.
struct PlanReport {
  bool fits = false;
  std::string text;     // for people
  Json json;            // the keys of `plan --json`
  std::string refusal;  // empty if it fits; else the missing memory and the smallest change
  // As the options say, or as the data chose, for these reasons:
  bool packing = true;
  double epochs = 1;
  std::vector<std::string> reasons = {};
};
/// Whether the text lists the tasks of the schedule, too: by kind, and each.
enum class PlanDetail : uint8_t { summary, tasks };
/// The content of plan.json and the output of `plan --json` (docs/planning.md lists the keys).
/// `memory`: the places of the plan, or the result of `graded`. `of_ranks`: memory_by_rank.
Json plan_json(const PlacedModel& model, const PlanTimes& times,
               const std::vector<PlaceLines>& memory, const std::vector<uint64_t>& of_ranks = {});

/// Whether it fits, the time of the run and the disk that it needs; then memory by use, the schedule,
/// the predicted time of a step and its lower bound. `refusal`: what is missing and what to change;
/// empty if the plan fits. `disk`: bytes.
std::string plan_text(const PlacedModel& model, const PlanTimes& times, PlanDetail detail,
                      const std::string& refusal, uint64_t disk);

}  // namespace hearth
