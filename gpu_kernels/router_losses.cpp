// The router's losses on the host's side: checks, a table of addresses, the launch.
#include "gpu_kernels/router_losses_rows.h"

#include <vector>

#include "gpu_kernels/gpu_op_set.h"
#include "gpu_kernels/gpu_stream.h"

namespace hearth::HEARTH_GPU {

void GpuOps::router_losses(Stream& stream, const RouterLosses& losses,
                           std::span<const ConstView> counts, std::span<const ConstView> prob_sums,
                           std::span<const ConstView> squares, View aux, View z,
                           View dprobs) const {
  const size_t layers = counts.size();
  const int64_t experts = layers > 0 ? counts[0].cols : 0;
  HEARTH_CHECK(prob_sums.size() == layers && (squares.empty() || squares.size() == layers) &&
                   aux.size() == 1 && z.size() == 1,
               "router_losses: shapes");
  HEARTH_CHECK(!dprobs || (dprobs.rows == static_cast<int64_t>(layers) && dprobs.cols == experts),
               "router_losses: shapes");
  std::vector<const double*> sums;
  const auto add = [&](std::span<const ConstView> views, int64_t cols) {
    for (const ConstView& view : views) {
      HEARTH_CHECK(view.rows == 1 && view.cols == cols, "router_losses: shapes");
      sums.push_back(view.as<double>());
    }
  };
  add(counts, experts);
  add(prob_sums, experts);
  add(squares, 1);

  GpuStream gpu = gpu_stream(stream);
  RouterLossArguments a;
  if (!sums.empty()) {
    a.sums = static_cast<const double* const*>(gpu.upload(std::as_bytes(std::span(sums))));
  }
  a.has_squares = !squares.empty();
  a.layers = static_cast<int>(layers);
  a.experts = static_cast<int>(experts);
  a.pooled = losses.pooled;
  a.tokens = losses.tokens;
  a.aux_weight = losses.aux_weight;
  a.aux = aux.as<double>();
  a.z = z.as<double>();
  if (dprobs) {
    a.dprobs = dprobs.as<float>();
    a.dprobs_stride = dprobs.stride;
  }
  router_losses_on(gpu.handle(), a);
}

ScratchNeed GpuOps::router_losses_scratch(int64_t /*layers*/, int64_t /*experts*/) const {
  return {};
}

}  // namespace hearth::HEARTH_GPU
