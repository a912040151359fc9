// The sizes at which a place is measured, and the curves that its runs make.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/place_profile.h"

namespace hearth {

/// Of a table that is not quick.
inline constexpr int64_t kLeastExpertPoints = 20;

/// A size of a task, and what its runs took.
struct ProfilePoint {
  TaskSize size;
  int64_t units = 0, pairs = 0;
  double share = 1;             // of the time of a run that the point counts
  std::vector<double> samples;  // of a run
  double wall_s = 0;            // of a run, with what prepares it; the least that was seen

  bool measured() const { return !samples.empty(); }
  /// How far apart the middle half of the runs is, as a share of their median. Of three runs or
  /// more.
  std::optional<double> spread() const;
};

/// The points of an entry.
struct ProfileCurve {
  TaskKind kind = TaskKind::embed;
  Phase phase = Phase::forward;
  int32_t layer = -1;
  CostShape shape;
  std::vector<ProfilePoint> points;  // by units
  int64_t planned_end = 0;           // units of the last point that the memory allows

  int64_t measured_points() const;
  /// About how long the next measurement of a point takes. A first one has a run that warms. 0: no
  /// smaller point says it.
  double expected_s(size_t point) const;
  /// The largest point that was measured below a point.
  std::optional<size_t> measured_below(size_t point) const;
};

double quantile(std::vector<double> values, double at);

/// The sizes and times of an entry.
struct CurveTimes {
  std::vector<int64_t> units, pairs;
  std::vector<double> seconds;
  void add(const ProfilePoint& point, double takes);
};

/// The curves of a bench model, as large as the memory of the values allows.
class ProfileCurves {
 public:
  /// Usage error if the memory is too small for the smallest sizes.
  ProfileCurves(const BenchPlace& place, const BenchSubject& subject,
                const ProfileOptions& options);

  std::vector<ProfileCurve>& all() { return curves_; }
  const std::vector<ProfileCurve>& all() const { return curves_; }
  std::vector<TaskSize> sizes() const;
  /// From now on no size may need more of a part of the memory than those of now.
  void fix_memory();
  /// Puts points up to `end` in place of those of a curve of experts. What was measured stays.
  void shorten(ProfileCurve& curve, int64_t end) const;
  /// From now on a call of experts has at most so many. Runs of calls of more are forgotten.
  void limit_experts(int64_t most);
  /// What was measured: tables of curves, their spread, and what is missing.
  PlaceProfile result() const;

 private:
  void add_curves();
  ProfileCurve& add_curve(TaskKind kind, Phase phase, int32_t layer);
  bool fits(const TaskSize& size) const;
  TaskMemory most_memory() const;
  void add_tokens(TaskKind kind, Phase phase, int32_t layer, const std::vector<int64_t>& tokens);
  int64_t pairs_at(int32_t layer, int64_t tokens) const;
  std::vector<int64_t> expert_sizes(int64_t most) const;
  void add_experts(Phase phase);
  void add_expert(ProfileCurve& curve, int64_t tokens) const;
  void replace_experts(ProfileCurve& curve, const std::vector<int64_t>& sizes) const;
  void add_sweep(TaskKind kind, const std::vector<int32_t>& layers);
  void drop_largest();
  CurveTimes times_of(const ProfileCurve& curve) const;
  std::vector<std::string> left_out() const;
  bool is_short(const ProfileCurve& curve) const;

  const BenchPlace& place_;
  const BenchSubject& subject_;
  const ProfileOptions& options_;
  uint64_t values_ = 0;                // bytes for values and scratch
  std::optional<TaskMemory> planned_;  // what was reserved, by part
  int64_t most_experts_;               // of a call
  std::vector<ProfileCurve> curves_;
};

}  // namespace hearth
