#include "report/axis.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "report/html.h"

namespace hearth {
namespace {

constexpr int kTicks = 5;

/// 1, 2 or 5 times a power of ten, so that about kTicks of them span the range.
double round_step(double range, int ticks) {
  const double rough = range / ticks, power = std::pow(10, std::floor(std::log10(rough)));
  const double share = rough / power;
  return power * (share <= 1.5 ? 1 : share <= 3.5 ? 2 : share <= 7.5 ? 5 : 10);
}

/// With as many digits as neighbours differ in; `size`: of the greatest value of the axis.
std::string tick_text(double value, double step, double size) {
  if (std::abs(value) < step * 1e-6) return "0";
  if (size >= 1e6) return fmt::format("{:.3g}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:.3g}k", value / 1e3);
  if (size < 1e-3) return fmt::format("{:.3g}", value);
  const int digits = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 6);
  return fmt::format("{:.{}f}", value, digits);
}

}  // namespace

void Axis::label(double value, const std::string& text) { ticks_.push_back({at(value), text}); }

double Axis::at(double value) const {
  if (logarithmic_) {
    return (std::log10(std::max(value, low_ * 1e-3)) - std::log10(low_)) /
           (std::log10(high_) - std::log10(low_));
  }
  return (value - low_) / (high_ - low_);
}

Axis Axis::linear(double least, double most, bool zero) {
  Axis axis;
  if (zero) least = std::min(least, 0.0), most = std::max(most, 0.0);
  if (most - least <= 1e-9 * std::max(std::abs(most), std::abs(least)) || most == least) {
    const double around = most == 0 ? 1 : 0.1 * std::abs(most);
    most += around;
    if (!zero || least < 0) least -= around;
  }
  const double step = round_step(most - least, kTicks);
  axis.low_ = step * std::floor(least / step + 1e-9);
  axis.high_ = step * std::ceil(most / step - 1e-9);
  const int count = static_cast<int>(std::lround((axis.high_ - axis.low_) / step));
  for (int i = 0; i <= count; ++i) {
    const double value = axis.low_ + i * step;
    axis.label(value, tick_text(value, step, std::max(std::abs(axis.low_), axis.high_)));
  }
  return axis;
}

Axis Axis::logarithmic(double least, double most) {
  Axis axis;
  axis.logarithmic_ = true;
  axis.low_ = least / 1.1;
  axis.high_ = std::max(most, least) * 1.1;
  const double decades = std::log10(axis.high_ / axis.low_);
  const int from = static_cast<int>(std::floor(std::log10(axis.low_)));
  const int to = static_cast<int>(std::ceil(std::log10(axis.high_)));
  const int apart = std::max(1, static_cast<int>(std::ceil(decades / 8)));
  for (int power = from; power <= to; ++power) {
    for (const int digit : {1, 2, 5}) {
      if (digit > 1 && decades > 2.5) continue;
      if (digit == 1 && ((power % apart) + apart) % apart != 0) continue;
      const double value = digit * std::pow(10, power);
      if (value < axis.low_ || value > axis.high_) continue;
      axis.label(value, tick_text(value, value, value));
    }
  }
  if (axis.ticks_.size() < 2) {  // a narrow range between round numbers
    axis.ticks_.clear();
    for (const double share : {0.0, 0.5, 1.0}) {
      const double value = axis.low_ * std::pow(axis.high_ / axis.low_, share);
      axis.label(value, number_text(value));
    }
  }
  return axis;
}

Axis Axis::steps(double first, double last) {
  Axis axis;
  axis.low_ = first;
  axis.high_ = last;
  if (last <= first) axis.low_ = first - 0.5, axis.high_ = first + 0.5;
  const double step = std::max(1.0, round_step(axis.high_ - axis.low_, 7));
  for (double value = step * std::ceil(first / step); value <= last; value += step) {
    axis.label(value, count_text(std::llround(value)));
  }
  if (last <= first && axis.ticks_.empty()) axis.label(first, count_text(std::llround(first)));
  return axis;
}

}  // namespace hearth
