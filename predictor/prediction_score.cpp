#include "predictor/prediction_score.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "predictor/persistence.h"

namespace hearth {

namespace {

/// Tokens whose choice is among the `top_k` foretold as most popular.
double hits_of_most_popular(std::span<const double> foretold, std::span<const int64_t> counts,
                            int64_t top_k) {
  std::vector<double> negative(foretold.begin(), foretold.end());
  for (double& n : negative) n = -n;
  const std::vector<int32_t> order = least_popular_first(negative);
  double hits = 0;
  for (int64_t i = 0; i < top_k; ++i) {
    hits += static_cast<double>(counts[static_cast<size_t>(order[static_cast<size_t>(i)])]);
  }
  return hits;
}

}  // namespace

void PredictionScore::add(const Prediction& prediction, int64_t top_k,
                          std::span<const int64_t> counts, std::span<const int32_t> choices) {
  HEARTH_CHECK(prediction.tokens.size() == counts.size(), "score: other number of experts");
  const std::vector<double> real(counts.begin(), counts.end());
  const double all = std::accumulate(real.begin(), real.end(), 0.0);
  if (all == 0) return;  // a micro-batch without tokens
  add_ranks(prediction.tokens, real);
  if (prediction.rows.empty()) {
    hits_ += hits_of_most_popular(prediction.tokens, counts, top_k);
    choices_ += all;
    return;
  }
  const auto k = static_cast<size_t>(top_k);
  HEARTH_CHECK(prediction.choices.size() == prediction.rows.size() * k, "score: shapes");
  double hits = 0;
  for (size_t i = 0; i < prediction.rows.size(); ++i) {
    const auto token = static_cast<size_t>(prediction.rows[i]);
    HEARTH_CHECK((token + 1) * k <= choices.size(), "score: no choices of a token");
    const auto foretold = std::span(prediction.choices).subspan(i * k, k);
    for (const int32_t expert : choices.subspan(token * k, k)) {
      hits += static_cast<double>(std::count(foretold.begin(), foretold.end(), expert));
    }
  }
  hits_ += hits * all / static_cast<double>(prediction.choices.size());
  choices_ += all;
}

void PredictionScore::add_ranks(std::span<const double> foretold, std::span<const double> real) {
  HEARTH_CHECK(foretold.size() == real.size(), "score: other number of experts");
  found_ += static_cast<double>(lasting_experts(real, foretold));
  least_ += static_cast<double>(hearth::least_quarter(std::ssize(real)));
}

void PredictionScore::add_loads(std::span<const uint8_t> foretold, std::span<const uint8_t> used,
                                std::span<const double> bytes) {
  HEARTH_CHECK(foretold.size() == bytes.size() && used.size() == bytes.size(), "score: shapes");
  for (size_t e = 0; e < bytes.size(); ++e) {
    if (used[e] == 0) continue;
    used_bytes_ += bytes[e];
    if (foretold[e] != 0) foretold_bytes_ += bytes[e];
  }
}

void PredictionScore::add(const PredictionScore& other) {
  hits_ += other.hits_, choices_ += other.choices_;
  found_ += other.found_, least_ += other.least_;
  foretold_bytes_ += other.foretold_bytes_, used_bytes_ += other.used_bytes_;
}

}  // namespace hearth
