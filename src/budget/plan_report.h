// The plan for people and as JSON.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "budget/plan_changes.h"
#include "budget/plan_time.h"

namespace hearth {

/// The plan that `train` would run: fits or not, memory lines, the printed list, the bound.
struct PlanReport {
  bool fits = false;
  std::string text;     // for people
  Json json;            // the keys of `plan --json`
  std::string refusal;  // empty if it fits; else what is missing and the smallest change
};
/// How much the text says of the list: a line for tasks of a kind, or one for every task.
enum class PlanDetail : uint8_t { kinds, tasks };
/// What `plan --json` prints, and plan.json (docs/planning.md lists the keys).
Json plan_json(const RunPlan& plan, const RunSetup& setup, const PlanTimes& times);

/// Memory by use, the list (a line a kind of task, or a task), time and bound.
std::string plan_text(const RunPlan& plan, const RunSetup& setup, const PlanTimes& times,
                      PlanDetail detail);

}  // namespace hearth
