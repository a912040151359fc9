#include "runtime/machine_rates.h"

#include <algorithm>
#include <initializer_list>

#include "runtime/rate_bench.h"
#include "runtime/rate_limits.h"
#include "runtime/rate_sweeps.h"

namespace hearth {
namespace {

/// The rate of products of these sizes with each of several numbers of rows.
double product_rate(Device& device, const RateOptions& options, int64_t out, int64_t in,
                    std::initializer_list<int64_t> counts) {
  const int64_t most = std::max(counts);
  RateBench bench(device, options, options.ops.linear_scratch(most, out, in, 0));
  const DType type = options.compute == Compute::bf16 ? DType::bf16 : DType::f32;
  const LinearView w{bench.matrix(type, out, in), {}, options.compute};
  const View x = bench.matrix(DType::f32, most, in), y = bench.matrix(DType::f32, most, out);
  double best = 0;
  // All sizes in turn, so that a neighbour's burst does not hit one of them alone.
  for (int round = 0; round < 2; ++round) {
    for (const int64_t rows : counts) {
      const double time = bench.shortest([&] {
        options.ops.linear_forward(bench.stream(), x.slice(0, rows), w, y.slice(0, rows));
      });
      best = std::max(best, 2.0 * static_cast<double>(rows * out * in) / time);
    }
  }
  return best;
}

double product_rate_of_host(Device& device, const RateOptions& options) {
  // Halved until two thirds of the memory hold them; the rest is for scratch.
  int64_t out = 1024 / kRatePart, in = 512 / kRatePart, count = 1024 / kRatePart;
  while (count > 64 &&
         6 * static_cast<uint64_t>(out * in + count * (in + out)) > options.max_bytes) {
    out /= 2, in /= 2, count /= 2;
  }
  return product_rate(device, options, out, in, {count / 4, count / 2, count});
}

/// Doubles the size until a product takes long enough to fill the device, or its memory ends.
double product_rate_of_device(Device& device, const RateOptions& options) {
  constexpr int64_t kFirst = 256, kLast = 8192;
  constexpr double kLongEnough = 5e-4;  // seconds
  double best = 0;
  for (int64_t n = kFirst; n <= kLast; n *= 2) {
    if (n > kFirst && 18 * product_of({n, n}) > options.max_bytes) break;
    best = std::max(best, product_rate(device, options, n, n, {n}));
    if (2.0 * static_cast<double>(n * n * n) / best >= kLongEnough) break;
  }
  return best;
}

}  // namespace

MachineRates measure_rates(Device& device, const RateOptions& options) {
  MachineRates rates;
  rates.flops_per_s = device.has_own_clock() ? product_rate_of_device(device, options)
                                             : product_rate_of_host(device, options);
  rates.update_params_per_s = measure_update(device, options, rate_limits(device, rates), false);
  return rates;
}

}  // namespace hearth
