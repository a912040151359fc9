#include "runtime/place_profile.h"

#include <algorithm>
#include <utility>

#include "runtime/profile_curves.h"

namespace hearth {
namespace {

constexpr int64_t kMiddleTokens = 64;       // times of fewer say little of many
constexpr int64_t kLeastExpertTokens = 64;  // log_spaced has kLeastExpertPoints below
constexpr double kLongSample = 0.05;        // seconds; shorter tasks run several times in a pass
constexpr double kLeastRuns = 25;    // behind a size that takes this part of the time a curve ends
constexpr double kAgreement = 1.05;  // of the two shortest runs of a quick table

/// What the orders of measuring share: the clock, and a measurement.
class Profiler {
 public:
  Profiler(const BenchPlace& place, BenchSubject& subject, const ProfileOptions& options)
      : place_(place),
        options_(options),
        begin_(place.clock()),
        curves_(place, subject, options),
        bench_(make_bench(place, subject, curves_)),
        setup_s_(place.clock() - begin_) {}

  PlaceProfile run() {
    options_.quick ? measure_quickly() : measure_all();
    PlaceProfile profile = curves_.result();
    profile.setup_s = setup_s_;
    return profile;
  }

 private:
  static TaskBench make_bench(const BenchPlace& place, BenchSubject& subject,
                              ProfileCurves& curves) {
    curves.fix_memory();
    return {place, subject, curves.sizes()};
  }

  /// The most important first: a point of each curve, then experts, then the other sizes.
  void measure_all() {
    for (ProfileCurve& curve : curves_.all()) {
      if (ended_ || curve.points.empty()) continue;
      if (options_.whole || left() > 0) measure(curve.points.front());
    }
    fit_experts();
    complete_experts();
    pass(true);
    while (!ended_ && pass(false)) {
    }
  }

  /// First a middle size of each curve, which says how long larger ones take; then the run's own
  /// sizes, or of all curves the same part of them for which there is time; then these again; then
  /// what is between.
  void measure_quickly() {
    for (ProfileCurve& curve : curves_.all()) {
      if (curve.points.empty() || ended_) continue;
      if (options_.whole || left() > 0) measure(middle_point(curve), false);
    }
    const std::vector<ProfilePoint*> own = own_points();
    for (size_t round = 0; round < options_.most_samples; ++round) {
      for (ProfilePoint* const point : own) {
        if (ended_ || left() <= 0 || is_settled(*point) || point->wall_s > left()) continue;
        measure(*point);
      }
    }
    pass(true);
    while (!ended_ && pass(false)) {
    }
  }

  double left() const { return options_.seconds - (place_.clock() - begin_); }

  /// Runs a point: once if it never ran, else as often as its time allows.
  void measure(ProfilePoint& point, bool warms = true) {
    const double known = point.measured() ? quantile(point.samples, .5) : kLongSample;
    const int times = known < kLongSample / 10 ? 4 : known < kLongSample ? 2 : 1;
    // Code and pages are warm after the first run; caches are used by others before each run.
    const bool first = !point.measured() || place_.between_bytes == 0;
    const bool warm = warms && first && left() > 2 * point.wall_s && left() > 0;
    const double begin = place_.clock();
    const std::vector<double> runs =
        bench_.run(point.size, times, warm, [&] { return left() > point.wall_s; });
    point.wall_s = (place_.clock() - begin) / static_cast<double>(runs.size() + (warm ? 1 : 0));
    point.samples.insert(point.samples.end(), runs.begin(), runs.end());
    ended_ = options_.progress &&
             !options_.progress(std::min(1.0, (place_.clock() - begin_) / options_.seconds));
  }

  /// The largest of at most 64 tokens; of experts, of at most an eighth of the run's own.
  ProfilePoint& middle_point(ProfileCurve& curve) const {
    const int64_t most = curve.kind == TaskKind::experts
                             ? std::max<int64_t>(1, options_.expert_tokens / 8)
                             : kMiddleTokens;
    ProfilePoint* middle = &curve.points.front();
    for (ProfilePoint& point : curve.points) {
      if (point.size.tokens > 0 && point.units <= most) middle = &point;
    }
    return *middle;
  }

  static bool is_sweep(const ProfileCurve& curve) { return curve.points.back().size.tokens == 0; }

  /// The largest point of at most a part of the run's own size. Of a sweep, which has no part, the
  /// largest that takes little of the time.
  size_t own_point(const ProfileCurve& curve, int64_t divisor) const {
    size_t own = curve.points.size() - 1;
    if (is_sweep(curve)) {
      while (own > 0 && curve.expected_s(own) > left() / 8) --own;
      return own;
    }
    const bool experts = curve.kind == TaskKind::experts && options_.expert_tokens > 0;
    const int64_t most = (experts ? options_.expert_tokens : curve.points[own].units) / divisor;
    while (own > 0 && curve.points[own].units > most) --own;
    return own;
  }

  /// A point of each curve: those of the run's own size, or of the largest part of it, halved, for
  /// which half of the time is enough.
  std::vector<ProfilePoint*> own_points() {
    for (int64_t divisor = 1;; divisor *= 2) {
      std::vector<ProfilePoint*> points;
      double takes_s = 0;
      for (ProfileCurve& curve : curves_.all()) {
        if (curve.points.empty()) continue;
        const size_t own = own_point(curve, divisor);
        if (!is_sweep(curve)) takes_s += curve.expected_s(own);
        points.push_back(&curve.points[own]);
      }
      if (2 * takes_s <= left() || divisor >= options_.most_tokens) return points;
    }
  }

  /// The curve of experts ends where its points would take more than their part of the time.
  void fit_experts() {
    for (ProfileCurve& curve : curves_.all()) {
      if (curve.kind != TaskKind::experts) continue;
      auto probe = std::find_if(curve.points.begin(), curve.points.end(),
                                [](const auto& p) { return p.units >= kLeastExpertTokens; });
      if (probe == curve.points.end() || ended_ || (!options_.whole && left() <= 0)) continue;
      measure(*probe);
      // Points are about a factor apart, so all of them take a few times the last.
      const double a_token = probe->wall_s * probe->share / static_cast<double>(probe->units);
      const double most = std::max(left(), 0.0) / 60 / a_token;
      if (most < static_cast<double>(curve.points.back().units)) {
        curves_.shorten(curve, std::max(kLeastExpertTokens, static_cast<int64_t>(most)));
      }
    }
  }

  /// A table has all points of experts. If the time is too short for them, small ones have to do.
  void complete_experts() {
    for (ProfileCurve& curve : curves_.all()) {
      if (curve.kind != TaskKind::experts) continue;
      const auto measure_all = [&](bool must) {
        for (size_t i = 0; i < curve.points.size() && !ended_; ++i) {
          if (curve.points[i].measured()) continue;
          if (must || curve.expected_s(i) < left()) measure(curve.points[i]);
        }
      };
      measure_all(false);
      const int64_t least = std::min(kLeastExpertPoints, options_.expert_points);
      if (curve.measured_points() >= least) continue;
      curves_.shorten(curve, std::min(kLeastExpertTokens, curve.points.back().units));
      measure_all(options_.whole);
    }
  }

  /// Whether there is time for a point. A curve ends behind a size that takes much of the time, so
  /// that all sizes are repeated; above its last size times grow in proportion.
  bool has_time(const ProfileCurve& curve, size_t i) const {
    if (left() <= 0) return false;
    if (options_.quick) return curve.expected_s(i) <= left() / 4;
    if (curve.expected_s(i) > left()) return false;
    if (curve.points[i].measured() || i == 0) return true;
    const ProfilePoint& before = curve.points[i - 1];
    return before.measured() && before.wall_s <= options_.seconds / kLeastRuns;
  }

  /// Of a quick table: whether the shortest run is no accident.
  bool is_settled(const ProfilePoint& point) const {
    if (point.samples.size() >= options_.most_samples) return true;
    if (!options_.quick || point.samples.size() < 3) return false;
    std::vector<double> shortest = point.samples;
    std::partial_sort(shortest.begin(), shortest.begin() + 2, shortest.end());
    return shortest[1] <= kAgreement * shortest[0];
  }

  /// Measures all points once more, the smallest of all curves first; of a quick table the largest.
  /// Returns whether any was.
  bool pass(bool first) {
    bool any = false;
    size_t most = 0;
    for (const ProfileCurve& curve : curves_.all()) most = std::max(most, curve.points.size());
    for (size_t n = 0; n < most && !ended_; ++n) {
      const size_t i = options_.quick ? most - 1 - n : n;
      for (ProfileCurve& curve : curves_.all()) {
        if (i >= curve.points.size() || ended_) continue;
        ProfilePoint& point = curve.points[i];
        if (first == point.measured()) continue;
        if (is_settled(point) || !has_time(curve, i)) continue;
        measure(point);
        any = true;
      }
    }
    return any;
  }

  const BenchPlace& place_;
  const ProfileOptions& options_;
  double begin_;
  ProfileCurves curves_;
  TaskBench bench_;
  double setup_s_;  // of the time: memory was reserved and filled
  bool ended_ = false;
};

}  // namespace

PlaceProfile profile_place(const BenchPlace& place, BenchSubject& subject,
                           const ProfileOptions& options) {
  return Profiler(place, subject, options).run();
}

}  // namespace hearth
