#include "predictor/persistence.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"

namespace hearth {
namespace {

double normal_below(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

/// The score below which a share of scores lies.
double normal_quantile(double share) {
  double low = -40, high = 40;
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    (normal_below(middle) < share ? low : high) = middle;
  }
  return (low + high) / 2;
}

/// The share of the lowest quarter of scores that stays among the lowest three eighths.
double lasting_share(double correlation) {
  constexpr int kPoints = 64;
  const double noise = std::sqrt(1 - correlation * correlation);
  const double edge = normal_quantile(3.0 / 8);
  double sum = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double score = normal_quantile((i + 0.5) / kPoints / 4);
    sum += normal_below((edge - correlation * score) / noise);
  }
  return sum / kPoints;
}

/// Two experts whose change of ranks brings one more or one fewer of the marked experts into the
/// `width` least popular.
std::optional<std::pair<int32_t, int32_t>> exchange(std::span<const int32_t> order, size_t width,
                                                    std::span<const int64_t> counts,
                                                    const std::vector<bool>& marked, bool fewer) {
  // Those nearest to the edge, with a count that is not the edge's if there is one: of experts with
  // the edge's count, numbers decide which are inside.
  const int64_t edge = counts[static_cast<size_t>(order[width - 1])];
  std::optional<int32_t> inside, outside;
  for (const bool equal : {false, true}) {
    for (size_t i = width; i-- > 0 && !inside;) {
      const auto e = static_cast<size_t>(order[i]);
      if (marked[e] == fewer && (equal || counts[e] < edge)) inside = order[i];
    }
    for (size_t i = width; i < order.size() && !outside; ++i) {
      const auto e = static_cast<size_t>(order[i]);
      if (marked[e] != fewer && (equal || counts[e] > edge)) outside = order[i];
    }
  }
  if (!inside || !outside) return std::nullopt;
  return std::pair(*inside, *outside);
}

template <class Count>
std::vector<int32_t> least_first(std::span<const Count> counts) {
  std::vector<int32_t> order(counts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return counts[static_cast<size_t>(a)] < counts[static_cast<size_t>(b)];
  });
  return order;
}

int64_t lasting_of_orders(std::span<const int32_t> old, std::span<const int32_t> now) {
  const auto experts = static_cast<int64_t>(old.size());
  std::vector<bool> least(old.size());
  for (int64_t i = 0; i < least_three_eighths(experts); ++i) {
    least[static_cast<size_t>(now[static_cast<size_t>(i)])] = true;
  }
  int64_t lasting = 0;
  for (int64_t i = 0; i < least_quarter(experts); ++i) {
    lasting += least[static_cast<size_t>(old[static_cast<size_t>(i)])] ? 1 : 0;
  }
  return lasting;
}

}  // namespace

int64_t least_quarter(int64_t experts) { return std::max<int64_t>(experts / 4, 1); }
int64_t least_three_eighths(int64_t experts) { return std::max<int64_t>(3 * experts / 8, 1); }

std::vector<int32_t> least_popular_first(std::span<const int64_t> counts) {
  return least_first(counts);
}
std::vector<int32_t> least_popular_first(std::span<const double> counts) {
  return least_first(counts);
}

int64_t lasting_experts(std::span<const int64_t> before, std::span<const int64_t> after) {
  return lasting_of_orders(least_first(before), least_first(after));
}
int64_t lasting_experts(std::span<const double> before, std::span<const double> after) {
  return lasting_of_orders(least_first(before), least_first(after));
}

double score_correlation(double persistence) {
  if (persistence >= 1) return 1;
  if (persistence <= 0) return -1;
  double low = -1, high = 1;  // the share rises with the correlation
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (lasting_share(middle) < persistence ? low : high) = middle;
  }
  return (low + high) / 2;
}

RankChain::RankChain(std::span<const int64_t> counts_by_rank, double persistence, uint64_t seed,
                     int64_t layer)
    : by_rank_(counts_by_rank.begin(), counts_by_rank.end()),
      correlation_(score_correlation(persistence)),
      seed_(seed),
      layer_(static_cast<uint32_t>(layer)),
      scores_(by_rank_.size(), 0.0),
      ranks_(by_rank_.size()) {
  HEARTH_CHECK(std::is_sorted(by_rank_.rbegin(), by_rank_.rend()), "ranks: counts rise");
  draw(0);
}

void RankChain::draw(double correlation) {
  const Random random(seed_, RandomSite::routing, layer_, step_++);
  const double noise = std::sqrt(1 - correlation * correlation);
  for (size_t e = 0; e < scores_.size(); ++e) {
    scores_[e] = correlation * scores_[e] + noise * random.normal(e);
  }
  set_ranks();
}

void RankChain::set_ranks() {
  std::vector<int32_t> order(scores_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return scores_[static_cast<size_t>(a)] > scores_[static_cast<size_t>(b)];
  });
  for (size_t rank = 0; rank < order.size(); ++rank) {
    ranks_[static_cast<size_t>(order[rank])] = static_cast<int32_t>(rank);
  }
}

std::vector<int64_t> RankChain::counts() const {
  std::vector<int64_t> result;
  for (const int32_t rank : ranks_) result.push_back(by_rank_[static_cast<size_t>(rank)]);
  return result;
}

void RankChain::advance(int64_t lasting) {
  const std::vector<int64_t> before = counts();
  draw(correlation_);
  correct(before, lasting);
}

void RankChain::correct(std::span<const int64_t> before, int64_t lasting) {
  const auto experts = static_cast<int64_t>(before.size());
  const auto width = static_cast<size_t>(least_three_eighths(experts));
  const std::vector<int32_t> old = least_popular_first(before);
  std::vector<bool> marked(before.size());
  for (int64_t i = 0; i < least_quarter(experts); ++i) {
    marked[static_cast<size_t>(old[static_cast<size_t>(i)])] = true;
  }
  const auto change = [&](std::pair<int32_t, int32_t> pair) {
    const auto a = static_cast<size_t>(pair.first), b = static_cast<size_t>(pair.second);
    std::swap(scores_[a], scores_[b]);
    std::swap(ranks_[a], ranks_[b]);
  };
  std::vector<int64_t> now = counts();
  int64_t found = lasting_experts(before, now);
  while (found != lasting) {
    const std::vector<int32_t> order = least_popular_first(now);
    const auto pair = exchange(order, width, now, marked, found > lasting);
    if (!pair) return;
    change(*pair);
    now = counts();
    const int64_t better = lasting_experts(before, now);
    if (std::abs(better - lasting) >= std::abs(found - lasting)) {
      change(*pair);  // back
      return;
    }
    found = better;
  }
}

}  // namespace hearth
