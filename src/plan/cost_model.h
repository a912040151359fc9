// What a step will take: each task's time from measured rates (runtime/machine_rates.h). Pure
// functions of the schedule, the rates and the work; nothing here asks a clock.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "device/link_rate.h"
#include "plan/bound.h"
#include "plan/trace.h"

namespace hearth {

/// Operations a second of a product by its number of rows: linear between the measured points in
/// the logarithm of the rows, constant outside them. Points by rising rows.
struct RateCurve {
  struct Point {
    double rows = 0;
    double flops_per_s = 0;
  };
  std::vector<Point> points;
  double at(double rows) const;
};

/// How fast this machine runs the ops of a run's shapes.
struct CostRates {
  RateCurve linear_forward, linear_backward;    // by rows of the micro-batch
  RateCurve experts_forward, experts_backward;  // by rows of one expert
  double attention_forward = 0;                 // operations a second of pairs
  double attention_backward = 0;
  double loss = 0;                 // operations a second, forward and backward
  double row_bytes_per_s = 0;      // ops on rows: read and write
  double norm_params_per_s = 0;    // sum of squares
  double update_params_per_s = 0;  // optimizer sweep
  std::vector<LinkRates> links;    // by place; none: copies take what memory takes
};

/// Seconds of a step by phase (forward, recompute, backward, loss, update, copy), by task kind, and by
/// what limits them.
struct StepCost {
  std::map<std::string, double> phases;
  std::map<std::string, double> kinds;
  double compute_s = 0;  // products
  double memory_s = 0;   // rows, norm and update: memory bandwidth
  double link_s = 0;     // copies between places
  double total_s() const { return compute_s + memory_s + link_s; }
  /// What most of the time is spent on: "compute", "memory bandwidth" or "link".
  const char* limit() const;
};

/// What a task costs, in seconds, by what limits it.
struct TaskCost {
  double compute_s = 0;
  double memory_s = 0;
  double link_s = 0;
  double total_s() const { return compute_s + memory_s + link_s; }
};

/// `task` of `schedule`; `batch`: the work of its micro-batch; rows are taken as evenly spread over the
/// experts. A copy takes the latency of its link and its bytes over the link's rate.
TaskCost task_cost(const Schedule& schedule, const Task& task, const BatchWork& batch,
                   const ModelSpec& spec, const ParameterTable& table, const CostRates& rates);

/// batches[m] is the work of micro-batch m.
StepCost step_cost(const Schedule& schedule, std::span<const BatchWork> batches,
                   const ModelSpec& spec, const ParameterTable& table, const CostRates& rates);

/// The predicted timeline: tasks one after the other, though those of several streams overlap.
Trace predicted_trace(const Schedule& schedule, std::span<const BatchWork> batches,
                      const ModelSpec& spec, const ParameterTable& table, const CostRates& rates);

}  // namespace hearth
