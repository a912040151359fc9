// The plan for people and as JSON.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "budget/plan_changes.h"
#include "budget/plan_time.h"

namespace hearth {

/// The plan that `train` would run: fits or not, memory lines, the printed schedule, the bound.
struct PlanReport {
  bool fits = false;
  std::string text;     // for people
  Json json;            // the keys of `plan --json`
  std::string refusal;  // empty if it fits; else what is missing and the smallest change
};
/// How much the text says of the schedule: a line per kind of task, or one per task.
enum class PlanDetail : uint8_t { kinds, tasks };
/// What `plan --json` prints, and plan.json (docs/planning.md lists the keys). `memory`: the places of
/// the plan, or those with what the run measured.
Json plan_json(const PlacedModel& model, const PlanTimes& times,
               const std::vector<PlaceLines>& memory);

/// Memory by use, the schedule (a line per kind of task, or per task), time and bound.
std::string plan_text(const PlacedModel& model, const PlanTimes& times, PlanDetail detail);

}  // namespace hearth
