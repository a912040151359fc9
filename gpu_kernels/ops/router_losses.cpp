// The router's losses on the host's side: checks, a table of addresses, the launch.
#include "gpu_kernels/kernels/router_losses_rows.h"

#include <vector>

#include "gpu_kernels/gpu_stream.h"
#include "gpu_kernels/ops/gpu_op_set.h"

namespace hearth::HEARTH_GPU {
namespace {

void router_losses(Stream& stream, const RouterLosses& losses, std::span<const ConstView> counts,
                   std::span<const ConstView> prob_sums, std::span<const ConstView> squares,
                   View aux, View z, View dprobs) {
  const size_t layers = counts.size();
  const int64_t experts = layers > 0 ? counts[0].cols : 0;
  std::vector<const double*> sums;
  const auto add = [&](std::span<const ConstView> views) {
    for (const ConstView& view : views) {
      sums.push_back(view.as<double>());
    }
  };
  add(counts);
  add(prob_sums);
  add(squares);

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

}  // namespace

void add_router_losses(OpTable& ops) { ops.router_losses.add(GpuOps::kName, router_losses); }

}  // namespace hearth::HEARTH_GPU
