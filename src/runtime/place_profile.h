// Measures the task times of one place: the entries of its cost table.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/cost_table.h"
#include "runtime/task_bench.h"

namespace hearth {

/// What to measure of a place, and how long.
struct ProfileOptions {
  double seconds = 0;      // in all, the memory's preparation included
  uint64_t max_bytes = 0;  // of the place's memory in use at any time
  int64_t most_tokens = 4096;
  size_t most_samples = 15;                      // runs of a point, if they agree
  int64_t token_points = 9, expert_points = 24;  // of a curve, at most
  /// The least table is measured even if it takes longer: the first point of each curve, and 20
  /// points of experts (or `expert_points`). Otherwise curves for which there is no time are left
  /// out.
  bool whole = true;
  /// A quick table of one run, whose own sizes are the largest and `expert_tokens`. They come first,
  /// or the same part of all of them, if the time is too short. A size is repeated until its two
  /// shortest runs agree within 5 %. What was not reached is scaled from
  /// what was (runtime/profile_scaling.h).
  bool quick = false;
  int64_t expert_tokens = 0;          // of one expert in the run; 0: unknown
  bool shared_experts = true;         // also what only ranks that share the experts do
  std::optional<int64_t> cores = {};  // what entries state; none: left open
  /// Called once the memory is prepared, with how long that took. Returns `seconds` anew.
  std::function<double(double setup_s)> seconds_after_setup = {};
  /// Called after each measurement, with the share of the time that has passed. Returns false to
  /// end early.
  std::function<bool(double share)> progress = {};
};

/// What a place reached.
struct PlaceProfile {
  std::vector<CostEntry> entries;
  int64_t points = 0;   // of all entries
  int64_t samples = 0;  // timed runs
  /// How far apart the middle half of the runs of a point is, as a share of its median: three
  /// quarters of the points have less. Above kNoisy the machine is not quiet. None if no point ran
  /// three times.
  std::optional<double> spread;
  /// What the time did not allow: "attention above 512 tokens". The table goes on from the last
  /// point in proportion.
  std::vector<std::string> left_out;
  double setup_s = 0;  // of the time: memory was reserved and filled
};
inline constexpr double kNoisy = 0.1;

/// Measures every kind and phase of task of the bench model: tokens about equally far apart by
/// their logarithms, experts at 20 numbers of tokens or more. Small sizes come first, and every
/// second size before the others. A size that would take longer than what is left of the time
/// is left out, and so are the sizes behind a size that took a 25th of the time in two runs. Then
/// repeats points, the largest of each curve first. Each has up to `most_samples` runs, and those
/// whose runs differ by more than kNoisy have more, until the time is over. Takes the shortest
/// runs, smoothed so that times never fall. A point of experts is a call of several experts,
/// divided by their number: as many as the memory holds, fewer if the time is short.
PlaceProfile profile_place(const BenchPlace& place, BenchSubject& subject,
                           const ProfileOptions& options);

}  // namespace hearth
