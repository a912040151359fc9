#include "runtime/machine_rates.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>

namespace hearth {

namespace {

/// Shortest time of a few runs, after one that warms up.
double shortest(int runs, const std::function<void()>& f) {
  f();
  double best = 1e30;
  for (int i = 0; i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    f();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count());
  }
  return best;
}

}  // namespace

MachineRates measure_rates(Device& device, const OpSet& ops, Compute compute, int64_t trained,
                           int workers, const std::vector<int>& cores) {
  // One product a worker's worth of tiles and more: rows grow with the team.
  const int64_t rows = std::max<int64_t>(512, 256 * workers), width = 1024;
  const int64_t parameters = std::clamp<int64_t>(trained, 1 << 16, int64_t{4} << 20);
  const ScratchNeed need =
      max_of(ops.linear_scratch(rows, width, width), ops.row_scratch(1, width));
  StreamOptions options;
  options.name = "measurement";
  options.workers = workers;
  options.cores = cores;
  options.scratch_bytes = need.shared;
  options.worker_scratch_bytes = need.per_worker;
  const auto stream = device.create_stream(options);

  const size_t product_bytes = static_cast<size_t>(2 * rows * width + width * width) * 4;
  const size_t sweep_bytes = static_cast<size_t>(parameters) * 16;
  const auto arena =
      device.reserve("measurement", SpaceKind::host, std::max(product_bytes, sweep_bytes));
  std::memset(arena->data(), 0, arena->size());
  auto* data = reinterpret_cast<float*>(arena->data());

  const View x(data, DType::f32, rows, width);
  const View y(data + rows * width, DType::f32, rows, width);
  const LinearView w{ConstView(data + 2 * rows * width, DType::f32, width, width), {}, compute};
  MachineRates rates;
  const double product = shortest(5, [&] { ops.linear_forward(*stream, x, w, y); });
  rates.flops_per_s =
      2.0 * static_cast<double>(rows) * static_cast<double>(width * width) / product;

  const auto part = [&](int64_t i) {
    return View(data + i * parameters, DType::f32, 1, parameters);
  };
  AdamWOptions adamw;
  const double sweep =
      shortest(2, [&] { ops.adamw(*stream, adamw, part(0), part(1), part(2), part(3), {}); });
  rates.update_params_per_s = static_cast<double>(parameters) / sweep;
  return rates;
}

}  // namespace hearth
