// A line of metrics.jsonl.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

/// Steps have numbers from 1 to this.
inline constexpr int64_t kMostSteps = 99'999'999;

/// A NaN field was missing or null; hearth writes non-finite numbers as null.
struct StepLine {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  int64_t step = 0;
  double loss = kNone, aux_loss = kNone, z_loss = kNone, grad_norm = kNone, lr = kNone;
  double tokens = kNone, trained_tokens = kNone, time_s = kNone, tokens_per_s = kNone;
  double bound_pct = kNone, peak_rss_bytes = kNone, late_load_s = kNone, expert_hit_rate = kNone;
  double peak_device_bytes = kNone;  // of all devices
  double epoch = kNone;              // passes over the data so far
  bool is_finite = true;             // neither loss nor gradient norm is null
  using Named = std::vector<std::pair<std::string, double>>;
  Named busy, stall_s, cpu_s;
  Named prediction;   // shares, by measure
  Named utilisation;  // shares, by role of ranks
  std::string limit;  // empty if there is none
  std::vector<double> expert_load, residency;
};

/// Reads a line into `line`, and reuses its memory. Input error naming file and line if it is not a
/// JSON object with a step, or a field that should be a number is not. Lines in hearth's own form
/// take a fast path; others use parse_json, with the same result.
void read_step_line(std::string_view text, const std::string& path, int64_t number, StepLine& line);

/// The fast path only. False, with `line` unspecified, if the text is not of that form.
bool read_simple_line(std::string_view text, StepLine& line);

/// Only the step, which hearth writes first.
int64_t step_of_line(std::string_view text, const std::string& path, int64_t number);

}  // namespace hearth
