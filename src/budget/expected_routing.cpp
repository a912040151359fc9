#include "budget/expected_routing.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.h"

namespace hearth {

namespace {

/// Whole numbers that add up to `total`, in the shares of `counts`, by the largest remainder.
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

/// Draws of a step. Later micro-batches of a step have those of earlier ones, so that memory is bounded.
constexpr int32_t kDraws = 16;

/// Choices by expert of `tokens` tokens, each of which takes an expert with probability top_k * share:
/// the mean and a deviation, which is normal, brought to whole choices.
std::vector<int64_t> draw(std::vector<double> shares, double tokens, int64_t top_k, int64_t total,
                          const Random& random) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (size_t e = 0; e < shares.size(); ++e) {
    const double share = sum > 0 ? shares[e] / sum : 1 / static_cast<double>(shares.size());
    const double chosen = std::min(1.0, share * static_cast<double>(top_k));
    const double deviation = std::sqrt(tokens * chosen * (1 - chosen)) * random.normal(e);
    shares[e] = std::clamp(tokens * chosen + deviation, 0.0, tokens);
  }
  return in_shares(std::move(shares), total);
}

class DrawnChoices {
 public:
  DrawnChoices(const ExpertCounts& counts, const ModelSpec& spec,
               std::span<const BatchWork> batches, int64_t steps)
      : steps_(steps) {
    for (const BatchWork& batch : batches) tokens_.push_back(batch.tokens);
    for (int64_t step = 0; step < steps; ++step) {
      for (size_t m = 0; m < tokens_.size(); ++m) {
        ByLayer& layers = drawn_[key_of(step, m)];
        if (layers.empty()) layers = draw_layers(counts, spec, step, m);
      }
    }
  }

  std::span<const int64_t> of(int64_t step, int32_t layer, int32_t micro_batch) const {
    const auto m = static_cast<size_t>(micro_batch);
    return drawn_.at(key_of(step % steps_, m))[static_cast<size_t>(layer)];
  }

 private:
  using ByLayer = std::vector<std::vector<int64_t>>;
  using Key = std::tuple<int64_t, size_t, double>;  // step, number of the draw, tokens

  Key key_of(int64_t step, size_t m) const { return {step, m % kDraws, tokens_[m]}; }

  ByLayer draw_layers(const ExpertCounts& counts, const ModelSpec& spec, int64_t step,
                      size_t m) const {
    const int64_t top_k = spec.experts_per_token;
    const int64_t total = std::llround(tokens_[m] * static_cast<double>(top_k));
    const auto number = static_cast<uint32_t>(step * kDraws) + static_cast<uint32_t>(m % kDraws);
    ByLayer layers;
    for (int32_t layer = 0; layer < spec.layers; ++layer) {
      std::vector<double> shares = counts[static_cast<size_t>(layer)];
      if (spec.has_experts(layer)) shares.resize(static_cast<size_t>(spec.experts));
      const Random random(0, RandomSite::routing, static_cast<uint32_t>(layer), number);
      layers.push_back(shares.empty() ? std::vector<int64_t>{}
                                      : draw(std::move(shares), tokens_[m], top_k, total, random));
    }
    return layers;
  }

  const int64_t steps_;
  std::vector<double> tokens_;  // by micro-batch
  std::map<Key, ByLayer> drawn_;
};

}  // namespace

std::shared_ptr<const ExpectedRouting> routing_like(const ExpertCounts& counts,
                                                    const ModelSpec& spec,
                                                    std::span<const BatchWork> batches,
                                                    std::string basis) {
  if (counts.empty()) return nullptr;
  ExpectedRouting routing;
  const auto drawn = std::make_shared<const DrawnChoices>(counts, spec, batches, routing.steps);
  routing.choices = [drawn](int64_t step, int32_t layer, int32_t micro_batch) {
    return drawn->of(step, layer, micro_batch);
  };
  routing.basis = std::move(basis);
  return std::make_shared<const ExpectedRouting>(std::move(routing));
}

}  // namespace hearth
