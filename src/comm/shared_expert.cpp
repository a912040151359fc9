#include "comm/shared_expert.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace hearth {

namespace {

constexpr float kUnits = 4194304;  // per 1: 2^22

}  // namespace

void add_expert(std::span<const float> weights, int64_t experts, std::span<int32_t> sum) {
  HEARTH_CHECK(weights.size() == sum.size() && experts > 0, "shared expert: another size");
  const auto most = static_cast<double>(std::numeric_limits<int32_t>::max() / experts);
  for (size_t i = 0; i < sum.size(); ++i) {
    const double units = static_cast<double>(weights[i]) * kUnits;
    if (std::isnan(units)) continue;
    sum[i] += static_cast<int32_t>(std::nearbyint(std::clamp(units, -most, most)));
  }
}

void add_sums(std::span<const int32_t> part, std::span<int32_t> sum) {
  HEARTH_CHECK(part.size() == sum.size(), "shared expert: another size");
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
}

void mean_of(std::span<const int32_t> sum, int64_t experts, DType wire, std::span<float> mean) {
  HEARTH_CHECK(sum.size() == mean.size() && experts > 0, "shared expert: another size");
  const double all = static_cast<double>(experts) * kUnits;
  for (size_t i = 0; i < sum.size(); ++i) {
    const auto value = static_cast<float>(static_cast<double>(sum[i]) / all);
    mean[i] = wire == DType::bf16 ? round_to_bf16(value) : value;
  }
}

}  // namespace hearth
