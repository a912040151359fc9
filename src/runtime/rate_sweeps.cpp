#include "runtime/rate_sweeps.h"

#include <algorithm>

#include "runtime/rate_bench.h"

namespace hearth {
namespace {

int64_t sweep_parameters(const RateOptions& o, const RateLimits& limits) {
  const uint64_t part = limits.whole ? 18 : 16;  // bytes a parameter
  const auto most = static_cast<int64_t>(
      std::min<uint64_t>(o.max_bytes / part, static_cast<uint64_t>(limits.sweep)));
  return std::clamp<int64_t>(o.parameters, 1 << 12, std::max<int64_t>(most, 1 << 12));
}

}  // namespace

double measure_update(Device& device, const RateOptions& o, const RateLimits& limits,
                      bool working) {
  const int64_t n = sweep_parameters(o, limits);
  RateBench bench(device, o, o.ops.row_scratch(1, 1024));
  const View g = bench.matrix(DType::f32, 1, n), w = bench.matrix(DType::f32, 1, n);
  const View m = bench.matrix(DType::f32, 1, n), v = bench.positive(1, n);
  const View rounded = working ? bench.matrix(DType::bf16, 1, n) : View{};
  const AdamWTensors tensors{g, w, m, v, rounded};
  AdamWOptions adamw;
  adamw.lr = 1e-5;
  const double time = bench.shortest([&] { o.ops.adamw(bench.stream(), adamw, {&tensors, 1}); });
  return static_cast<double>(n) / time;
}

double measure_norm(Device& device, const RateOptions& o, const RateLimits& limits) {
  const int64_t n = 4 * sweep_parameters(o, limits);
  RateBench bench(device, o, o.ops.sum_squares_scratch(1, n));
  const ConstView x = bench.matrix(DType::f32, 1, n);
  const View sum = bench.matrix(DType::f64, 1, 1);
  return static_cast<double>(n) / bench.shortest([&] {
    o.ops.sum_squares(bench.stream(), {&x, 1}, sum);
  });
}

}  // namespace hearth
