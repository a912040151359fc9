// Predicts how long the tasks of a step take: from the cost table of their place
// (plan/task_costs.h), or from measured rates (runtime/machine_rates.h). The simulator
// (plan/simulator.h) makes the time of the step from them. Pure functions of the schedule, the rates
// and the work; no clocks.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "device/link_rate.h"
#include "plan/bound.h"
#include "plan/message_simulation.h"
#include "plan/rank_costs.h"
#include "plan/simulator.h"
#include "plan/task_costs.h"

namespace hearth {

/// Operations per second of a product, as a function of its rows. Between measured points it is
/// linear in log(rows); outside them it is constant. Points are sorted by rows.
struct RateCurve {
  struct Point {
    double rows = 0;
    double flops_per_s = 0;
  };
  std::vector<Point> points;
  double at(double rows) const;
};

/// How fast this machine runs the ops on a run's shapes. Rates are 0, and curves empty, if every
/// place that computes has a table.
struct CostRates {
  RateCurve linear_forward, linear_backward;    // by rows of the micro-batch
  RateCurve experts_forward, experts_backward;  // by rows of one expert
  double attention_forward = 0;                 // operations per second, for pairs of query and key
  double attention_backward = 0;
  double loss = 0;                 // operations per second, forward and backward
  double row_bytes_per_s = 0;      // of ops on rows; bytes read plus bytes written
  double norm_params_per_s = 0;    // sum of squares
  double update_params_per_s = 0;  // optimizer sweep
  std::vector<LinkRates> links;    // by place; copies over links that are not there, or without
                                   // limits, run at the speed of memory
  std::vector<PlaceCosts> tables;  // by place; a place with a table takes its times; may be empty
  RankCosts ranks = {};            // of several shards or ranks
};

/// Seconds of the tasks of a step, added up: by phase (forward, recompute, backward, loss, update,
/// copy), by task kind, and by what limits them. Tasks that run at the same time all count.
struct StepCost {
  std::map<std::string, double> phases;
  std::map<std::string, double> kinds;
  double compute_s = 0;  // products
  double memory_s = 0;   // ops on rows, norm and update
  double link_s = 0;     // copies between places and ranks, each alone on its links
  double total_s() const { return compute_s + memory_s + link_s; }
};

/// Seconds of a task, by the resource that limits it.
struct TaskCost {
  double compute_s = 0;
  double memory_s = 0;
  double link_s = 0;
  double total_s() const { return compute_s + memory_s + link_s; }
};

/// The cost of a task of the schedule; `batch` is the work of its micro-batches. Rows count as evenly
/// spread over the experts. A copy that has its links to itself costs their latency plus its bytes
/// over the slower rate. A task that the table of its place does not time costs nothing; a copy at the speed of memory costs
/// nothing if that was not measured.
TaskCost task_cost(const Schedule& schedule, const Task& task, const BatchWork& batch,
                   const ModelSpec& spec, const ParameterTable& table, const CostRates& rates);

/// batches[m] is the work of micro-batch m.
StepCost step_cost(const Schedule& schedule, std::span<const BatchWork> batches,
                   const ModelSpec& spec, const ParameterTable& table, const CostRates& rates);

/// What each task of the schedule takes, for the simulator.
std::vector<TaskDemand> task_demands(const Schedule& schedule, std::span<const BatchWork> batches,
                                     const ModelSpec& spec, const ParameterTable& table,
                                     const CostRates& rates);

/// What the ranks of a run send each other, for simulate_messages.
std::vector<Collective> collectives_of(const Schedule& schedule, std::span<const BatchWork> batches,
                                       const ModelSpec& spec, const ParameterTable& table,
                                       const RankCosts& ranks);

}  // namespace hearth
