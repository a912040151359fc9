#include "predictor/apportion.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace hearth {
namespace {

/// The parts that are not at their caps, and what is left for them.
struct Open {
  std::vector<size_t> parts;
  int64_t rest = 0;

  /// The quota of each open part.
  std::vector<double> quotas(std::span<const double> weights) const {
    double sum = 0;
    for (const size_t i : parts) sum += weights[i];
    std::vector<double> result;
    for (const size_t i : parts) {
      const double share = sum > 0 ? weights[i] / sum : 1 / static_cast<double>(parts.size());
      result.push_back(static_cast<double>(rest) * share);
    }
    return result;
  }
};

/// Sets parts whose quota reaches the cap to the cap, until no quota does.
void fill_capped(Open& open, std::span<const double> weights, std::span<const int64_t> caps,
                 std::vector<int64_t>& result) {
  for (bool changed = true; changed;) {
    changed = false;
    const std::vector<double> quotas = open.quotas(weights);
    std::vector<size_t> still;
    int64_t rest = open.rest;
    for (size_t i = 0; i < open.parts.size(); ++i) {
      const size_t part = open.parts[i];
      if (quotas[i] >= static_cast<double>(caps[part])) {
        result[part] = caps[part];
        rest -= caps[part];
        changed = true;
      } else {
        still.push_back(part);
      }
    }
    open = {std::move(still), rest};
  }
}

}  // namespace

std::vector<int64_t> apportion(std::span<const double> weights, int64_t total,
                               std::span<const int64_t> caps) {
  std::vector<int64_t> result(weights.size(), 0);
  Open open;
  open.rest = total;
  open.parts.resize(weights.size());
  std::iota(open.parts.begin(), open.parts.end(), size_t{0});
  if (!caps.empty()) {
    HEARTH_CHECK(std::accumulate(caps.begin(), caps.end(), int64_t{0}) >= total,
                 "apportion: more than the caps hold");
    fill_capped(open, weights, caps, result);
  }
  if (open.parts.empty()) return result;

  const std::vector<double> quotas = open.quotas(weights);
  std::vector<std::pair<double, size_t>> remainders;  // the largest first
  int64_t left = open.rest;
  for (size_t i = 0; i < quotas.size(); ++i) {
    const double whole = std::floor(quotas[i]);
    result[open.parts[i]] = static_cast<int64_t>(whole);
    left -= static_cast<int64_t>(whole);
    remainders.emplace_back(whole - quotas[i], open.parts[i]);
  }
  std::sort(remainders.begin(), remainders.end());
  // Rounding of the quotas can leave one too few, or give a part its cap already.
  for (size_t i = remainders.size(); left < 0 && i-- > 0;) {
    int64_t& part = result[remainders[i].second];
    if (part > 0) --part, ++left;
  }
  while (left > 0) {
    const int64_t before = left;
    for (const auto& [remainder, part] : remainders) {
      if (left == 0) break;
      if (!caps.empty() && result[part] >= caps[part]) continue;
      ++result[part], --left;
    }
    HEARTH_CHECK(left < before, "apportion: nothing takes the rest");
  }
  return result;
}

}  // namespace hearth
