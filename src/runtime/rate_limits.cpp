#include "runtime/rate_limits.h"

#include <algorithm>

namespace hearth {
namespace {

constexpr int64_t kPart = kRatePart;

constexpr RateLimits kHostLimits{.rows = 512 / kPart,
                                 .width = 2048 / kPart,
                                 .out = 1024 / kPart,
                                 .expert_width = 1024 / kPart,
                                 .document = 512 / kPart,
                                 .vocabulary = 2048 / kPart,
                                 .sweep = (4 << 20) / kPart,
                                 .least_experts = 2,
                                 .most_experts = 8,
                                 .flops = 2e9};

constexpr int64_t kAny = (int64_t{1} << 20) / kPart;
constexpr RateLimits kDeviceLimits{.rows = kAny,
                                   .width = kAny,
                                   .out = kAny,
                                   .expert_width = kAny,
                                   .document = kAny,
                                   .vocabulary = kAny,
                                   .sweep = (64 << 20) / kPart,
                                   .least_experts = 1,
                                   .most_experts = kAny,
                                   .whole = true};
// An op of a measurement ends about so soon on a device, and takes so many operations at least.
constexpr double kDeviceOp = 4e-3, kLeastFlops = 2e9;

}  // namespace

RateLimits rate_limits(const Device& device, const MachineRates& best) {
  if (!device.has_own_clock()) return kHostLimits;
  RateLimits limits = kDeviceLimits;
  limits.flops = std::max(kDeviceOp * best.flops_per_s, kLeastFlops);
  return limits;
}

int64_t largest(int64_t most, const std::function<bool(int64_t)>& fits) {
  while (most > 1 && !fits(most)) most /= 2;
  return std::max<int64_t>(most, 1);
}

uint64_t product_of(std::initializer_list<int64_t> factors) {
  uint64_t product = 1;
  for (const int64_t factor : factors) product *= static_cast<uint64_t>(factor);
  return product;
}

}  // namespace hearth
