// How many tokens choose each expert, by rank: the most popular expert first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hearth {

/// The sum of squared shares of counts; 0 if all counts are 0.
double skew_of(std::span<const int64_t> counts);

/// Popularity in one layer of one step.
struct Popularity {
  std::vector<int64_t> first;  // tokens by their first choice; they add up to the tokens
  std::vector<int64_t> all;    // by all top_k choices; no expert has more than the tokens
};

/// First choices have Zipf shares, rounded by the largest remainder, with the exponent that brings
/// the skew of the counts nearest to `skew`. A token's later choices are other experts: choice j goes
/// to experts in proportion to their popularity and to the tokens that have not chosen them yet.
/// `experts` and `tokens` are at least 1, `top_k` 1 to `experts`, `skew` 1/experts to 1.
Popularity zipf_popularity(int64_t experts, int64_t top_k, int64_t tokens, double skew);

/// How far the skew of first choices may be from what was asked.
inline constexpr double kSkewTolerance = 0.02;
/// Whether the counts have the skew to this tolerance. Few tokens allow few values.
bool has_skew(std::span<const int64_t> counts, double skew);
/// The least power of two of tokens, `least` or more, whose first choices have the skew.
int64_t tokens_for_skew(int64_t experts, double skew, int64_t least = 1);

}  // namespace hearth
