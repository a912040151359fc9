// The router's losses, on the calling thread: a few thousand numbers a micro-batch.
#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/tiles.h"

namespace hearth {
namespace {

// values[l * E + e] = sums[l][e] / tokens, each the mean over the layers if pooled.
void shares(std::span<const ConstView> sums, const RouterLosses& o, int64_t experts,
            double* values) {
  for (const ConstView& layer : sums) {
    const auto l = &layer - sums.data();
    for (int64_t e = 0; e < experts; ++e) {
      values[l * experts + e] = layer.as<double>()[e] / o.tokens;
    }
  }
  const auto layers = static_cast<int64_t>(sums.size());
  for (int64_t e = 0; e < experts && o.pooled; ++e) {
    double sum = 0;
    for (int64_t l = 0; l < layers; ++l) sum += values[l * experts + e];
    for (int64_t l = 0; l < layers; ++l) {
      values[l * experts + e] = sum / static_cast<double>(layers);
    }
  }
}

void router_losses(Stream& stream, const RouterLosses& o, std::span<const ConstView> counts,
                   std::span<const ConstView> prob_sums, std::span<const ConstView> squares,
                   View aux, View z, View dprobs) {
  const auto layers = static_cast<int64_t>(counts.size());
  const int64_t experts = layers > 0 ? counts[0].cols : 0;
  Scratch::Frame frame(stream.scratch());
  auto* share = stream.scratch().take<double>(layers * experts);
  auto* mean_prob = stream.scratch().take<double>(layers * experts);
  shares(counts, o, experts, share);
  shares(prob_sums, o, experts, mean_prob);
  double loss = 0;
  for (int64_t i = 0; i < layers * experts; ++i) loss += share[i] * mean_prob[i];
  const double scale = layers > 0 ? static_cast<double>(experts) / static_cast<double>(layers) : 0;
  aux.as<double>()[0] = scale * loss;

  double sum = 0;
  for (const ConstView& square : squares) sum += square.as<double>()[0];
  z.as<double>()[0] = squares.empty() ? 0 : sum / (static_cast<double>(layers) * o.tokens);
  if (!dprobs) return;
  const double factor = o.aux_weight * scale / o.tokens;
  for (int64_t l = 0; l < layers; ++l) {
    for (int64_t e = 0; e < experts; ++e) {
      dprobs.row<float>(l)[e] = static_cast<float>(factor * share[l * experts + e]);
    }
  }
}

ScratchNeed router_losses_scratch(int64_t layers, int64_t experts) {
  const size_t doubles = align_up(static_cast<size_t>(layers * experts) * sizeof(double));
  return {2 * (doubles + kArenaAlignment), 0};
}

}  // namespace

void cpu::add_router_losses(OpTable& ops) {
  ops.router_losses.add(CpuOps::kName, router_losses);
  ops.router_losses_scratch.add(router_losses_scratch);
}

}  // namespace hearth
