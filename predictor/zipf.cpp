#include "predictor/zipf.h"

#include <cmath>

#include "base/error.h"

namespace hearth {

std::vector<double> zipf_shares(int64_t experts, double exponent) {
  HEARTH_CHECK(experts > 0 && exponent >= 0, "zipf: no experts, or a negative exponent");
  std::vector<double> shares(static_cast<size_t>(experts));
  double sum = 0;
  for (size_t r = shares.size(); r-- > 0;) {  // the smallest first, which rounds least
    shares[r] = std::pow(static_cast<double>(r + 1), -exponent);
    sum += shares[r];
  }
  for (double& share : shares) share /= sum;
  return shares;
}

double skew_of_shares(std::span<const double> shares) {
  double sum = 0;
  for (size_t r = shares.size(); r-- > 0;) sum += shares[r] * shares[r];
  return sum;
}

double zipf_exponent(int64_t experts, double skew) {
  double low = 0, high = kMostExponent;  // the skew rises with the exponent
  if (skew_of_shares(zipf_shares(experts, low)) >= skew) return low;
  if (skew_of_shares(zipf_shares(experts, high)) <= skew) return high;
  for (int i = 0; i < 64; ++i) {
    const double middle = (low + high) / 2;
    (skew_of_shares(zipf_shares(experts, middle)) < skew ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace hearth
