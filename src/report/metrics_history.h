// What metrics.jsonl tells of a run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/series.h"

namespace hearth {

struct MetricsHistory {
  StepAxis axis;         // of the lines; of expert_load a coarser one
  int64_t steps = 0;     // with a line
  int64_t repeated = 0;  // lines whose step stands again behind them: they do not count
  int64_t last_step = 0;

  Series loss, aux_loss, z_loss, grad_norm, lr, tokens_per_s, bound_pct;
  std::map<std::string, Series> busy;  // a resource, in percent of the step's time
  std::map<std::string, double> busy_s;
  std::vector<Series> expert_load;  // a MoE layer: tokens of the fullest expert over the mean

  std::optional<double> first_loss, last_loss;  // of the first and last step where it is finite
  int64_t first_loss_step = 0, last_loss_step = 0;
  int64_t tokens = 0, trained_tokens = 0;
  double time_s = 0;      // of the steps that count
  double repeated_s = 0;  // of the others
  uint64_t peak_rss_bytes = 0, peak_device_bytes = 0;
  int64_t not_finite = 0;                 // steps
  std::vector<int64_t> not_finite_steps;  // the first of them
};

/// Reads the log line by line, twice: memory depends on the number of layers, resources and resumes
/// alone. A missing file is an empty log; a torn last line is left out. `first` and `last`: steps
/// that the axis reaches at least (those of evaluations). Input error naming file and line for a line
/// that is no JSON object with a step, or has a number where none belongs.
MetricsHistory read_metrics(const std::string& path, int64_t first, int64_t last);

}  // namespace hearth
