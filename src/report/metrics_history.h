// The history of a run from metrics.jsonl.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/series.h"

namespace hearth {

struct MetricsHistory {
  StepAxis axis;         // of all series except those by layer, which are coarser
  int64_t steps = 0;     // steps with a line
  int64_t repeated = 0;  // lines whose step appears again later; they do not count
  int64_t last_step = 0;
  double last_epoch = 0;  // passes over the data at the last step; 0: unknown

  Series loss, aux_loss, z_loss, grad_norm, lr, tokens_per_s, bound_pct, hit_pct, late_load_s;
  std::map<std::string, Series> busy;             // by resource, in percent of the step's time
  std::map<std::string, Series> prediction;       // by measure, in percent
  std::map<std::string, Series> utilisation;      // by role of ranks, in percent
  std::map<std::string, double> busy_s, stall_s;  // by resource, in all
  std::map<std::string, int64_t> limits;          // by resource: steps that it bounded
  std::map<std::string, double> cpu_s;            // of workers, by what they did
  std::vector<Series> expert_load;  // by MoE layer: tokens of the busiest expert / mean
  std::vector<Series> residency;    // by layer: percent of the weights that were on devices

  std::optional<double> first_loss, last_loss;  // of the first and last step with a finite loss
  int64_t first_loss_step = 0, last_loss_step = 0;
  int64_t tokens = 0, trained_tokens = 0;
  double time_s = 0;      // of steps that count
  double repeated_s = 0;  // of repeated lines
  uint64_t peak_rss_bytes = 0, peak_device_bytes = 0;
  int64_t not_finite = 0;                 // number of steps with a non-finite loss or gradient
  std::vector<int64_t> not_finite_steps;  // the first 500 of them
};

/// Reads the log twice, line by line, so memory depends only on the number of layers, resources and
/// resumes. A missing file is an empty log; ignores a torn last line. `first` and `last`: steps
/// that the axis must cover, such as evaluations. Input error naming file and line if a line is not
/// a JSON object with a step, or a field that should be a number is not.
MetricsHistory read_metrics(const std::string& path, int64_t first, int64_t last);

}  // namespace hearth
