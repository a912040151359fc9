#include "runtime/profile_scaling.h"

#include <algorithm>
#include <optional>

namespace hearth {
namespace {

constexpr double kBackwardOfForward = 2;  // two products for one

bool is_sweep(TaskKind kind) { return kind == TaskKind::norm || kind == TaskKind::update; }

/// Seconds at a size that was measured.
std::optional<double> at_units(const CurveTimes& times, int64_t units) {
  const auto found = std::find(times.units.begin(), times.units.end(), units);
  if (found == times.units.end()) return std::nullopt;
  return times.seconds[static_cast<size_t>(found - times.units.begin())];
}

/// The curve of the other phase; curves.size(): there is none.
size_t other_phase(const std::vector<ProfileCurve>& curves, size_t of) {
  for (size_t i = 0; i < curves.size(); ++i) {
    if (i != of && curves[i].kind == curves[of].kind && curves[i].layer == curves[of].layer) {
      return i;
    }
  }
  return curves.size();
}

double ratio(int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); }

/// Times of the last measured size that a larger size takes.
double growth(const CurveTimes& times, const CurveTimes* other, const ProfilePoint& to) {
  const int64_t from = times.units.back();
  double most = ratio(to.units, from);
  if (!times.pairs.empty()) most = std::max(most, ratio(to.pairs, times.pairs.back()));
  if (other != nullptr) {
    const auto small = at_units(*other, from), large = at_units(*other, to.units);
    if (small && large) return std::clamp(*large / *small, 1.0, most);
  }
  const size_t n = times.units.size();
  if (n < 2) return most;
  const double step = times.seconds[n - 1] - times.seconds[n - 2];
  const double more =
      step * static_cast<double>(to.units - from) / static_cast<double>(from - times.units[n - 2]);
  return std::clamp(1 + more / times.seconds.back(), 1.0, most);
}

}  // namespace

void CurveTimes::add(const ProfilePoint& point, double takes) {
  units.push_back(point.units);
  if (point.pairs > 0) pairs.push_back(point.pairs);
  seconds.push_back(takes);
}

void add_unreached(const std::vector<ProfileCurve>& curves, std::vector<CurveTimes>& times) {
  const std::vector<CurveTimes> measured = times;
  for (size_t i = 0; i < curves.size(); ++i) {
    if (curves[i].points.empty()) continue;
    const size_t of = other_phase(curves, i);
    const CurveTimes* const other = of < curves.size() ? &measured[of] : nullptr;
    if (times[i].units.empty()) {
      if (other == nullptr) continue;
      times[i] = *other;
      const bool backward = curves[i].phase == Phase::backward;
      for (double& s : times[i].seconds) {
        s *= backward ? kBackwardOfForward : 1 / kBackwardOfForward;
      }
    }
    const ProfilePoint& last = curves[i].points.back();
    if (times[i].units.empty() || last.units <= times[i].units.back()) continue;
    if (is_sweep(curves[i].kind)) continue;  // in proportion, as tables go on
    times[i].add(last, times[i].seconds.back() * growth(times[i], other, last));
  }
}

}  // namespace hearth
