#include "runtime/place_profile.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "runtime/profile_curves.h"

namespace hearth {
namespace {

constexpr int64_t kMiddleTokens = 64;       // times of fewer say little of many
constexpr int64_t kLeastExpertTokens = 64;  // log_spaced has kLeastExpertPoints below
constexpr double kLongSample = 0.05;        // seconds; shorter tasks run several times in a pass
constexpr double kLeastRuns = 25;    // behind a size that takes this part of the time a curve ends
constexpr double kAgreement = 1.05;  // of the two shortest runs of a quick table
constexpr size_t kCoarse = 2;        // of the first pass: from one size to the next that it takes
constexpr double kCoarseShare = 8;   // a size of it takes at most this part of the time left
constexpr double kExpertShare = 3;   // the least calls of experts take this part, by estimate
constexpr double kTokensShare = 1. / 60;  // of the time left: most tokens of one expert
constexpr double kCallShare = 1. / 30;    // and a call of so many of all experts
constexpr double kLeastCalls = 100;       // they take as long as so many calls of the smallest size
constexpr double kFewCalls = 1.5;         // times what the least calls take: time for no others
constexpr double kWarmShare = 100;  // what takes more than this part runs without a run that warms
constexpr size_t kMoreSamples = 8;  // times as many where repeated runs differ

/// What the orders of measuring share: the clock, and a measurement.
class Profiler {
 public:
  Profiler(const BenchPlace& place, BenchSubject& subject, const ProfileOptions& options)
      : place_(place),
        options_(options),
        begin_(place.clock()),
        curves_(place, subject, options),
        bench_(make_bench(place, subject, curves_)),
        setup_s_(place.clock() - begin_),
        seconds_(options.seconds_after_setup ? options.seconds_after_setup(setup_s_)
                                             : options.seconds) {}

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

  /// The most important first: a point of each curve, every second size, experts, then the other
  /// sizes. Points come before repeats, and of repeats the ends of curves come first.
  void measure_all() {
    for (ProfileCurve& curve : curves_.all()) {
      if (ended_ || curve.points.empty()) continue;
      if (options_.whole || left() > 0) measure(curve.points.front());
    }
    limit_calls();
    coarse_pass();
    fit_experts();
    complete_experts();
    pass(true);
    repeat_ends();
    while (!ended_ && pass(false)) {
    }
    while (!ended_ && repeat_noisy()) {
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

  double left() const { return seconds_ - (place_.clock() - begin_); }

  /// Runs a point: once if it never ran, else as often as its time allows.
  void measure(ProfilePoint& point, bool warms = true) {
    const bool is_known = point.measured();
    const double known = is_known ? quantile(point.samples, .5) : kLongSample;
    const int times = known < kLongSample / 10 ? 4 : known < kLongSample ? 2 : 1;
    // Code and pages are warm after the first run; caches are used by others before each run.
    const bool first = !point.measured() || place_.between_bytes == 0;
    const bool warm = warms && first && left() > 2 * point.wall_s && left() > 0;
    const double begin = place_.clock();
    const std::vector<double> runs =
        bench_.run(point.size, times, warm, [&] { return left() > point.wall_s; });
    const double wall_s =
        (place_.clock() - begin) / static_cast<double>(runs.size() + (warm ? 1 : 0));
    // What a neighbour took from one run must not decide which sizes there is time for.
    point.wall_s = is_known ? std::min(point.wall_s, wall_s) : wall_s;
    point.samples.insert(point.samples.end(), runs.begin(), runs.end());
    ended_ = options_.progress &&
             !options_.progress(std::min(1.0, (place_.clock() - begin_) / seconds_));
  }

  /// Whether a first run may have one before it that warms. A GPU loads its code for each size.
  bool warms(const ProfileCurve& curve, size_t i) const {
    return !place_.device.host_reaches() || kWarmShare * curve.expected_s(i) <= left();
  }

  /// Calls of fewer experts, so that the least points of experts leave time for the other tasks.
  void limit_calls() {
    int64_t most = 0;
    for (const ProfileCurve& curve : curves_.all()) {
      if (curve.kind != TaskKind::experts) continue;
      if (!curve.points.front().measured()) return;
      most = std::max(most, curve.points.front().size.experts);
    }
    const double takes_s = least_experts_s(), may_s = std::max(left(), 0.0) / kExpertShare;
    if (takes_s <= may_s) return;
    curves_.limit_experts(static_cast<int64_t>(static_cast<double>(most) * may_s / takes_s));
    for (ProfileCurve& curve : curves_.all()) {
      if (curve.kind != TaskKind::experts || ended_ || curve.points.front().measured()) continue;
      if (options_.whole || left() > 0) measure(curve.points.front());
    }
  }

  /// About how long the least points of experts take, which need a point measured.
  double least_experts_s() const {
    double takes_s = 0;
    for (const ProfileCurve& curve : curves_.all()) {
      if (curve.kind == TaskKind::experts) takes_s += kLeastCalls * curve.points.front().wall_s;
    }
    return takes_s;
  }

  /// Every second size of all curves but those of experts, in at most half of the time that is
  /// left, and in less if experts need more. So a table that ends early has sizes far apart.
  void coarse_pass() {
    const double end = std::max(left() / 2, std::min(least_experts_s(), left() * 3 / 4));
    size_t most = 0;
    for (const ProfileCurve& curve : curves_.all()) most = std::max(most, curve.points.size());
    for (size_t i = kCoarse; i < most; i += kCoarse) {
      for (ProfileCurve& curve : curves_.all()) {
        if (curve.kind == TaskKind::experts || i >= curve.points.size()) continue;
        if (ended_ || left() <= end) return;
        confirm_end(curve, i);
        if (curve.points[i].measured() || !has_time(curve, i)) continue;
        if (curve.expected_s(i) > left() / kCoarseShare) continue;
        measure(curve.points[i], warms(curve, i));
      }
    }
  }

  /// What lies above a curve is read from its last point, so that must not be an accident.
  void repeat_ends() {
    for (ProfileCurve& curve : curves_.all()) {
      const std::optional<size_t> last = curve.measured_below(curve.points.size());
      if (ended_ || !last || curve.points[*last].samples.size() > 1) continue;
      if (has_time(curve, *last)) measure(curve.points[*last]);
    }
  }

  /// Measures once more what repeated runs do not agree about, the worst first. Returns whether
  /// anything was.
  bool repeat_noisy() {
    std::vector<std::pair<double, ProfilePoint*>> noisy;
    for (ProfileCurve& curve : curves_.all()) {
      for (ProfilePoint& point : curve.points) {
        const double spread = point.spread().value_or(0);
        if (spread > kNoisy && point.samples.size() < kMoreSamples * options_.most_samples) {
          noisy.emplace_back(spread, &point);
        }
      }
    }
    std::sort(noisy.begin(), noisy.end(), std::greater<>());
    bool any = false;
    for (const auto& one : noisy) {
      if (ended_ || one.second->wall_s > left()) continue;
      measure(*one.second);
      any = true;
    }
    return any;
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
    if (left() < kFewCalls * least_experts_s()) {  // the least points, and no others
      for (ProfileCurve& curve : curves_.all()) {
        if (curve.kind != TaskKind::experts) continue;
        curves_.shorten(curve, std::min(kLeastExpertTokens, curve.points.back().units));
      }
      return;
    }
    for (ProfileCurve& curve : curves_.all()) {
      if (curve.kind != TaskKind::experts) continue;
      auto probe = std::find_if(curve.points.begin(), curve.points.end(),
                                [](const auto& p) { return p.units >= kLeastExpertTokens; });
      if (probe == curve.points.end() || ended_ || (!options_.whole && left() <= 0)) continue;
      measure(*probe);
      // Points are about a factor apart, so all of them take a few times the last.
      const double a_token = probe->wall_s * probe->share / static_cast<double>(probe->units);
      const double call = kCallShare / static_cast<double>(probe->size.experts);
      const double most = std::max(left(), 0.0) * std::min(kTokensShare, call) / a_token;
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
          if (must || curve.expected_s(i) < left()) measure(curve.points[i], warms(curve, i));
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
    const std::optional<size_t> below = curve.measured_below(i);
    return below && curve.points[*below].wall_s <= seconds_ / kLeastRuns;
  }

  /// One run alone does not end a curve: it may have taken longer by accident.
  void confirm_end(ProfileCurve& curve, size_t i) {
    const std::optional<size_t> below = curve.measured_below(i);
    if (options_.quick || !below || has_time(curve, i)) return;
    ProfilePoint& end = curve.points[*below];
    if (end.samples.size() == 1 && end.wall_s <= left()) measure(end);
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
  /// `first`: those that were not measured yet. A later pass takes them, too, if there is time now:
  /// shorter runs of smaller sizes promise that they take less. Returns whether any was measured.
  bool pass(bool first) {
    bool any = false;
    size_t most = 0;
    for (const ProfileCurve& curve : curves_.all()) most = std::max(most, curve.points.size());
    for (size_t n = 0; n < most && !ended_; ++n) {
      const size_t i = options_.quick ? most - 1 - n : n;
      for (ProfileCurve& curve : curves_.all()) {
        if (i >= curve.points.size() || ended_) continue;
        ProfilePoint& point = curve.points[i];
        if (first && point.measured()) continue;
        if (!point.measured()) confirm_end(curve, i);
        if (is_settled(point) || !has_time(curve, i)) continue;
        measure(point, point.measured() || options_.quick || warms(curve, i));
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
  double seconds_;  // in all
  bool ended_ = false;
};

}  // namespace

PlaceProfile profile_place(const BenchPlace& place, BenchSubject& subject,
                           const ProfileOptions& options) {
  return Profiler(place, subject, options).run();
}

}  // namespace hearth
