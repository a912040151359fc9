// Measures the task times of one place: the entries of its cost table.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "plan/cost_table.h"
#include "runtime/task_bench.h"

namespace hearth {

/// What to measure of a place, and how long.
struct ProfileOptions {
  double seconds = 0;      // of measuring
  uint64_t max_bytes = 0;  // of the place's memory in use at any time
  int64_t most_tokens = 4096;
  bool all_experts = true;            // measure 20 points of experts, even if it takes longer
  std::optional<int64_t> cores = {};  // what entries state; none: left open
  /// Called after each measurement, with the share of the time that has passed. Returns false to
  /// end early.
  std::function<bool(double share)> progress = {};
};

/// What a place reached.
struct PlaceProfile {
  std::vector<CostEntry> entries;
  int64_t points = 0;   // of all entries
  int64_t samples = 0;  // timed runs
  /// How far apart the middle half of the runs of a point is, as a share of its median; the median
  /// over the points. Above kNoisy the machine is not quiet. None if no point ran three times.
  std::optional<double> spread;
};
inline constexpr double kNoisy = 0.1;

/// Measures every kind and phase of task of the bench model: tokens about equally far apart by their
/// logarithms, experts at 20 numbers of tokens or more. Repeats all points, in passes, until the
/// time is over, and takes medians, smoothed so that times never fall. Each curve has at least its
/// first point, and experts have 20, whatever the time. A point of experts is a call of several
/// experts, as many as the memory holds, divided by their number.
PlaceProfile profile_place(const BenchPlace& place, BenchSubject& subject,
                           const ProfileOptions& options);

}  // namespace hearth
