#include "reference/reference_op_set.h"
#include "reference/values.h"

namespace hearth {
namespace {

/// Of the sums of expert e in layer l, a share of T tokens: itself or the mean over all layers.
double share_of(std::span<const ConstView> sums, size_t l, int64_t e, const RouterLosses& o) {
  if (!o.pooled) return sums[l].as<double>()[e] / o.tokens;
  double sum = 0;
  for (const ConstView& layer : sums) sum += layer.as<double>()[e] / o.tokens;
  return sum / static_cast<double>(sums.size());
}

// aux = E / M * sum f P is linear in P = prob_sums / T, and pooled or not each layer's probs have the
// gradient E / M * f / T: pooled, M equal products hold P over M.
void router_losses(Stream&, const RouterLosses& o, std::span<const ConstView> counts,
                   std::span<const ConstView> prob_sums, std::span<const ConstView> squares,
                   View aux, View z, View dprobs) {
  const size_t layers = counts.size();
  const int64_t experts = layers > 0 ? counts[0].cols : 0;
  const double scale = layers > 0 ? static_cast<double>(experts) / static_cast<double>(layers) : 0;
  double loss = 0, squares_sum = 0;
  for (size_t l = 0; l < layers; ++l) {
    for (int64_t e = 0; e < experts; ++e) {
      const double f = share_of(counts, l, e, o);
      loss += f * share_of(prob_sums, l, e, o);
      if (dprobs) {
        set_value(dprobs, static_cast<int64_t>(l), e, o.aux_weight * scale / o.tokens * f);
      }
    }
    if (!squares.empty()) squares_sum += squares[l].as<double>()[0];
  }
  aux.as<double>()[0] = scale * loss;
  z.as<double>()[0] = squares.empty() ? 0 : squares_sum / (static_cast<double>(layers) * o.tokens);
}

ScratchNeed router_losses_scratch(int64_t, int64_t) { return {}; }

}  // namespace

void reference::add_router_losses(OpTable& ops) {
  ops.router_losses.add(ReferenceOps::kName, router_losses);
  ops.router_losses_scratch.add(router_losses_scratch);
}

}  // namespace hearth
