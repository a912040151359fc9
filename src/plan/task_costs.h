// What cost tables say about the tasks of a schedule: which entry times a task, and how large the
// task is in the units of the entry. Pure functions. Predictions and the pacer
// (runtime/pacer.h) read times here, so both mean the same.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plan/bound.h"
#include "plan/cost_table.h"
#include "plan/schedule.h"

namespace hearth {

/// What times the tasks of a place: its table, and how the place computes.
struct PlaceCosts {
  std::shared_ptr<const CostTable> table;  // null: tasks take their real time
  int64_t cores = 1;
  Compute compute = Compute::f32;
};

/// The matrices of a task, by which a table chooses among entries. The width is the inner width of
/// experts and mlp, the width of all heads of attention, the vocabulary of embed and head, else the
/// hidden size.
CostShape cost_shape(const Task& task, const ModelSpec& spec);

/// The entry that times a task at this place. Null if the task takes its real time: without a table,
/// if the table has no entry of its kind, phase and compute type, and for clip and copy. Points into
/// the table.
const CostEntry* cost_entry(const PlaceCosts& costs, const Task& task, const ModelSpec& spec);

/// The kinds and phases of tasks that the table of a place does not time, each once, in the order of
/// the schedule: "attention backward, norm". Empty if it times all of them, or if there is no table.
std::string untimed_tasks(const PlaceCosts& costs, Place place, const Schedule& schedule,
                          const ModelSpec& spec);

/// The share of a layer's experts that a task computes, or whose rows it copies.
double share_of_experts(const Task& task, const ModelSpec& spec);
/// The share of a layer's rows that dispatch or combine works on: of a part, that of its experts; 1 for
/// the task that routes, 0 for tasks that touch no routed rows. Of other tasks 1.
double share_of_rows(const Task& task, const ModelSpec& spec);

/// Of a divided expert at a place (TaskKind::divided): the entry of the experts. The columns take their
/// share of what the whole expert would.
const CostEntry* divided_entry(const PlaceCosts& costs, const Task& task, const ModelSpec& spec);

/// Seconds in which a place moves bytes in its memory, as fast as its updates do. 0: its table has no
/// updates.
double swept_seconds(const PlaceCosts& costs, double bytes, const ModelSpec& spec);

/// The trained parameters that a norm or update task of this rank works on.
double task_parameters(const Task& task, const ParameterTable& table);

/// Seconds of an experts task. Expert e has the rows [offsets[e], offsets[e + 1]), and of each further
/// micro-batch of the task those that lie `stride` offsets behind the last say. An expert's rows of
/// all micro-batches are one call, since its weights are read once. Without rows it is not called.
double experts_seconds(const CostEntry& entry, std::span<const int32_t> offsets,
                       int64_t segments = 1, int64_t stride = 0);
/// Pairs of a query and a key that the query sees. The queries of a sequence are the last of its
/// keys. `window`: most keys that a query sees; 0: all keys before it.
double pairs_of(std::span<const int32_t> query_offsets, std::span<const int32_t> key_offsets,
                int64_t window);

/// The size of a task, as an entry counts it, before its rows are known: they count as evenly
/// spread over the experts, so of experts it is the rows of each call. 0: the task has nothing to
/// do. `batch`: the work of the task's micro-batches together.
double task_units(const Task& task, const BatchWork& batch, const ModelSpec& spec,
                  const ParameterTable& table);
/// Seconds of a task before its rows are known.
double predicted_seconds(const CostEntry& entry, const Task& task, const BatchWork& batch,
                         const ModelSpec& spec, const ParameterTable& table);

/// A lower bound of a step with tables, as step_bound is one without. No stream can take less than
/// its tasks take one after the other, so the slowest stream is the bound. Where a place has a table,
/// a task takes the table's time, and experts run at the best rate of their entry, because any
/// expert may get any number of rows. Where it has none, `rates` hold. Experts that are divided among
/// places are divided as is best for the step (plan/divided_bound.h), because the router may send all
/// rows to one place. Recompute does not count.
StepBound step_bound_by_tables(const Schedule& schedule, std::span<const BatchWork> batches,
                               const ModelSpec& spec, const ParameterTable& table,
                               const MachineRates& rates, std::span<const PlaceCosts> places);

}  // namespace hearth
