// Smoothing of measured curves, and sizes about equally far apart.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>
#include <random>

#include "plan/monotone.h"

namespace hearth::test {
namespace {

using Catch::Approx;
using Values = std::vector<double>;

/// The best of all never-falling curves, by brute force over pools: each way to cut the curve into
/// runs of one value.
double least_error(const Values& values) {
  double best = 1e300;
  const size_t n = values.size();
  for (uint32_t cuts = 0; cuts < 1u << (n - 1); ++cuts) {
    double error = 0, before = -1e300;
    bool rises = true;
    for (size_t begin = 0; begin < n;) {
      size_t end = begin + 1;
      while (end < n && (cuts >> (end - 1) & 1u) == 0) ++end;
      double mean = 0;
      for (size_t i = begin; i < end; ++i) mean += std::log(values[i]);
      mean /= static_cast<double>(end - begin);
      rises = rises && mean >= before;
      before = mean;
      for (size_t i = begin; i < end; ++i) error += std::pow(std::log(values[i]) - mean, 2);
      begin = end;
    }
    if (rises) best = std::min(best, error);
  }
  return best;
}

TEST_CASE("monotone: a rising curve stays as it is, a spike is shared out") {
  CHECK(never_falling(Values{1, 2, 2, 3.7}) == Values{1, 2, 2, 3.7});
  CHECK(never_falling(Values{}).empty());
  const Values smooth = never_falling(Values{1, 4, 1, 8});
  CHECK(smooth[0] == 1);
  CHECK(smooth[1] == Approx(2));
  CHECK(smooth[2] == Approx(2));
  CHECK(smooth[3] == 8);
  CHECK_THROWS_AS(never_falling(Values{1, 0}), std::logic_error);
}

TEST_CASE("monotone: no never-falling curve is nearer") {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> draw(-2, 2);
  for (int round = 0; round < 300; ++round) {
    Values values;
    for (size_t n = 1 + random() % 9; n > 0; --n) values.push_back(std::exp(draw(random)));
    const Values smooth = never_falling(values);
    REQUIRE(smooth.size() == values.size());
    REQUIRE(std::is_sorted(smooth.begin(), smooth.end()));
    double error = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      error += std::pow(std::log(values[i]) - std::log(smooth[i]), 2);
    }
    CHECK(error == Approx(least_error(values)).margin(1e-9));
  }
}

TEST_CASE("monotone: sizes from one to the most, each once, far apart by their logarithms") {
  CHECK(log_spaced(1, 24) == std::vector<int64_t>{1});
  CHECK(log_spaced(5, 24) == std::vector<int64_t>{1, 2, 3, 4, 5});
  CHECK(log_spaced(1000, 4) == std::vector<int64_t>{1, 10, 100, 1000});
  CHECK(log_spaced(64, 24).size() >= 20);
  for (const int64_t most : {2, 63, 64, 100, 4096, 1'000'000}) {
    for (const int64_t count : {2, 9, 24}) {
      const auto sizes = log_spaced(most, count);
      INFO(most << " " << count);
      CHECK(sizes.front() == 1);
      CHECK(sizes.back() == most);
      CHECK(std::ssize(sizes) <= count);
      CHECK(std::adjacent_find(sizes.begin(), sizes.end(), std::greater_equal<>()) == sizes.end());
    }
  }
}

}  // namespace
}  // namespace hearth::test
