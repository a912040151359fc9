// The plan for people and as JSON.
#pragma once

#include <string>

#include "base/json.h"
#include "train/plan_changes.h"
#include "train/plan_time.h"
#include "train/trainer.h"

namespace hearth {

/// What `plan --json` prints, and plan.json (docs/planning.md lists the keys).
Json plan_json(const RunPlan& plan, const RunSetup& setup, const PlanTimes& times);

/// Memory by use, the list (a line a kind of task, or a task), time and bound.
std::string plan_text(const RunPlan& plan, const RunSetup& setup, const PlanTimes& times,
                      PlanDetail detail);

}  // namespace hearth
