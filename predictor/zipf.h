// Zipf's law, the popularity that synthetic routing has: the expert of rank r = 1, 2, ... is the
// first choice of a share r^-a of the tokens. The skew G is the sum of the squared shares: 1/E if
// all E experts are equally popular, 1 if one expert gets all tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hearth {

/// Shares by rank, the most popular first. They add up to 1 and never rise. `exponent` is at least 0.
std::vector<double> zipf_shares(int64_t experts, double exponent);

/// The sum of squared shares.
double skew_of_shares(std::span<const double> shares);

/// The exponent whose shares have this skew, to the precision of a double. `skew` is 1/experts to 1;
/// 1, which no exponent reaches, gives kMostExponent.
double zipf_exponent(int64_t experts, double skew);

inline constexpr double kMostExponent = 64;  // the second expert gets 2^-64 of the first's tokens

}  // namespace hearth
