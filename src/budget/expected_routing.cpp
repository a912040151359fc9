#include "budget/expected_routing.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

namespace hearth {

namespace {

/// Whole numbers that add up to `total`, in the shares of `counts`.
std::vector<int64_t> in_shares(std::vector<double> counts, int64_t total) {
  double sum = std::accumulate(counts.begin(), counts.end(), 0.0);
  if (sum <= 0) {
    std::ranges::fill(counts, 1.0);
    sum = static_cast<double>(counts.size());
  }
  std::vector<int64_t> whole;
  std::vector<double> remainders;
  for (const double count : counts) {
    const double share = count / sum * static_cast<double>(total);
    whole.push_back(static_cast<int64_t>(share));
    remainders.push_back(share - std::floor(share));
  }
  std::vector<size_t> order(counts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order,
                           [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  int64_t left = total - std::accumulate(whole.begin(), whole.end(), int64_t{0});
  for (size_t i = 0; left > 0; i = (i + 1) % order.size(), --left) ++whole[order[i]];
  return whole;
}

}  // namespace

std::shared_ptr<const ExpectedRouting> routing_like(const ExpertCounts& counts,
                                                    const ModelSpec& spec,
                                                    std::span<const BatchWork> batches,
                                                    std::string basis) {
  if (counts.empty()) return nullptr;
  // By the choices of a micro-batch: by layer.
  using ByLayer = std::vector<std::vector<int64_t>>;
  std::map<int64_t, ByLayer> known;
  std::vector<int64_t> choices;
  for (const BatchWork& batch : batches) {
    const int64_t of = std::llround(batch.tokens * static_cast<double>(spec.experts_per_token));
    choices.push_back(of);
    ByLayer& layers = known[of];
    if (!layers.empty()) continue;
    for (int32_t layer = 0; layer < spec.layers; ++layer) {
      std::vector<double> shares = counts[static_cast<size_t>(layer)];
      if (spec.has_experts(layer)) shares.resize(static_cast<size_t>(spec.experts));
      layers.push_back(shares.empty() ? std::vector<int64_t>{} : in_shares(std::move(shares), of));
    }
  }
  ExpectedRouting routing;
  routing.choices = [known = std::move(known), choices = std::move(choices)](int64_t, int32_t layer,
                                                                             int32_t micro_batch) {
    const ByLayer& layers = known.at(choices[static_cast<size_t>(micro_batch)]);
    return std::span<const int64_t>(layers[static_cast<size_t>(layer)]);
  };
  routing.basis = std::move(basis);
  return std::make_shared<const ExpectedRouting>(std::move(routing));
}

}  // namespace hearth
