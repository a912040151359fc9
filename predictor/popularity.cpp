#include "predictor/popularity.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "predictor/apportion.h"
#include "predictor/zipf.h"

namespace hearth {
namespace {

/// First choices, with the exponent near the solution whose rounded counts come nearest.
std::vector<int64_t> first_choices(int64_t experts, int64_t tokens, double skew,
                                   std::vector<double>& shares) {
  const auto counts_at = [&](double exponent) {
    shares = zipf_shares(experts, exponent);
    return apportion(shares, tokens);
  };
  const double solved = zipf_exponent(experts, skew);
  std::vector<int64_t> best = counts_at(solved);
  std::vector<double> best_shares = shares;
  // Rounding moves the skew where tokens are few: look for the exponent that makes up for it.
  double low = 0, high = kMostExponent;
  for (int i = 0; i < 40; ++i) {
    const double miss = skew_of(best) - skew;
    if (std::abs(miss) <= 1e-6 * skew) break;
    const double middle = i == 0 ? solved : (low + high) / 2;
    const std::vector<int64_t> counts = counts_at(middle);
    const double found = skew_of(counts) - skew;
    if (std::abs(found) < std::abs(miss)) {
      best = counts;
      best_shares = shares;
    }
    (found < 0 ? low : high) = middle;
  }
  shares = std::move(best_shares);
  return best;
}

}  // namespace

double skew_of(std::span<const int64_t> counts) {
  double sum = 0, squares = 0;
  for (const int64_t n : counts) sum += static_cast<double>(n);
  if (sum == 0) return 0;
  for (const int64_t n : counts) {
    const double share = static_cast<double>(n) / sum;
    squares += share * share;
  }
  return squares;
}

Popularity zipf_popularity(int64_t experts, int64_t top_k, int64_t tokens, double skew) {
  HEARTH_CHECK(experts > 0 && tokens > 0 && top_k > 0 && top_k <= experts,
               "popularity: sizes out of range");
  Popularity result;
  std::vector<double> shares;
  result.first = first_choices(experts, tokens, skew, shares);
  result.all = result.first;
  std::vector<double> weights(shares.size());
  std::vector<int64_t> free(shares.size());
  for (int64_t choice = 1; choice < top_k; ++choice) {
    for (size_t e = 0; e < free.size(); ++e) {
      free[e] = tokens - result.all[e];
      // Not 0 for an expert without tokens: a token has to choose someone.
      weights[e] = std::max(shares[e], 1e-12) * static_cast<double>(free[e]);
    }
    const std::vector<int64_t> more = apportion(weights, tokens, free);
    for (size_t e = 0; e < more.size(); ++e) result.all[e] += more[e];
  }
  return result;
}

bool has_skew(std::span<const int64_t> counts, double skew) {
  return std::abs(skew_of(counts) - skew) <= kSkewTolerance * skew;
}

int64_t tokens_for_skew(int64_t experts, double skew, int64_t least) {
  int64_t tokens = 1;
  while (tokens < least || !has_skew(zipf_popularity(experts, 1, tokens, skew).first, skew)) {
    HEARTH_CHECK(tokens < int64_t{1} << 40, "popularity: no number of tokens has the skew");
    tokens *= 2;
  }
  return tokens;
}

}  // namespace hearth
