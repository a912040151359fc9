// Where the blocks of a model go, and the plan for it: the cut into stages whose plan fits.
#pragma once

#include "budget/plan.h"

namespace hearth {

struct PlacementPlan {
  Placement placement;
  ParameterTable table;  // with the place of each block; not bound to memory
  Plan plan;
};

/// Places a model and plans it. One place for the dense parts leaves nothing to decide. Several get
/// a stage each: the cut whose slowest stage is fastest, among those whose plan fits; with
/// recompute only if nothing fits without it, or if that leaves so small a group that recompute is
/// faster. If none fits, the tried cut that lacks the least memory; no more are tried once every
/// device is short. If the request has `stage_ends` that
/// cut these layers for these devices, that cut is planned. A function of its arguments alone. Times
/// are those of cost tables if every device has one, else floating-point operations. The places of
/// the subject's table are ignored. Usage error if there are more devices than layers, embedding and
/// head. If `ModelPlaces::hot` says so, devices are then filled with hot experts
/// (budget/hot_placement.h).
PlacementPlan plan_placement(const PlanSubject& subject, const PlanRequest& request);

/// The plan of a given placement.
PlacementPlan plan_with(const PlanSubject& subject, const Placement& placement,
                        const PlanRequest& request);

/// The same run in a process of its own: what a program has resident differs from start to start, by
/// some hundred KiB.
PlanSubject at_another_start(PlanSubject subject);

}  // namespace hearth
