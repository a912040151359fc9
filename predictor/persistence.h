// How popularity lasts from step to step. Persistence is the share of the E/4 least popular experts
// of a step that are among the 3E/8 least popular of the next step (APTMoE's measure of history as a
// predictor). Of two experts with equal counts, the one with the lower number is less popular.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"

namespace hearth {

/// Sizes of the two groups: E/4 and 3E/8 rounded down, at least 1.
int64_t least_quarter(int64_t experts);
int64_t least_three_eighths(int64_t experts);

/// Experts by popularity, the least popular first.
std::vector<int32_t> least_popular_first(std::span<const int64_t> counts);
/// The same of foretold tokens, which need not be whole.
std::vector<int32_t> least_popular_first(std::span<const double> counts);

/// How many of the least quarter by `before` are among the least three eighths by `after`.
int64_t lasting_experts(std::span<const int64_t> before, std::span<const int64_t> after);
int64_t lasting_experts(std::span<const double> before, std::span<const double> after);

/// The correlation of normal scores, -1 to 1, for which the lowest quarter of the old scores has this
/// probability to be among the lowest three eighths of the new scores. 3/8 gives 0.
double score_correlation(double persistence);

/// The ranks of a layer's experts, step after step. Each expert has a score that follows a normal
/// autoregressive process; its rank is that of the score. Where chance would miss the persistence,
/// experts change ranks.
class RankChain {
 public:
  /// `counts_by_rank`: tokens of each rank, the most popular first; never rising. `layer` makes the
  /// chains of a seed differ.
  RankChain(std::span<const int64_t> counts_by_rank, double persistence, uint64_t seed,
            int64_t layer);

  /// Rank of each expert, 0 for the most popular.
  const std::vector<int32_t>& ranks() const { return ranks_; }
  /// Goes to the next step, with `lasting` of the least quarter still among the least three eighths,
  /// or as near as the counts allow: experts with equal counts cannot change ranks.
  void advance(int64_t lasting);

 private:
  void draw(double correlation);
  void set_ranks();
  std::vector<int64_t> counts() const;
  void correct(std::span<const int64_t> before, int64_t lasting);

  std::vector<int64_t> by_rank_;
  double correlation_;
  uint64_t seed_;
  uint32_t layer_, step_ = 0;
  std::vector<double> scores_;  // by expert; the highest is the most popular
  std::vector<int32_t> ranks_;  // by expert
};

}  // namespace hearth
