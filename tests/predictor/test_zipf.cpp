// Zipf shares, apportionment, and popularity with a given skew.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <random>

#include "predictor/apportion.h"
#include "predictor/popularity.h"
#include "predictor/zipf.h"

namespace hearth::test {
namespace {

using Catch::Approx;
using Counts = std::vector<int64_t>;

int64_t sum(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

TEST_CASE("zipf: exponents of published skews") {
  struct Known {
    int64_t experts;
    double skew, exponent;
  };
  for (const Known& k :
       {Known{8, .2, .962}, Known{8, .4, 1.779}, Known{8, .6, 2.5}, Known{8, .8, 3.521},
        Known{16, .1, .756}, Known{16, .2, 1.268}, Known{16, .3, 1.604}, Known{16, .4, 1.906},
        Known{64, .05, .858}, Known{64, .1, 1.129}, Known{64, .15, 1.309}, Known{64, .2, 1.458}}) {
    INFO(k.experts << " experts, skew " << k.skew);
    const double exponent = zipf_exponent(k.experts, k.skew);
    CHECK(exponent == Approx(k.exponent).margin(6e-4));
    CHECK(skew_of_shares(zipf_shares(k.experts, exponent)) == Approx(k.skew).epsilon(1e-12));
  }
}

TEST_CASE("zipf: shares add up to one and never rise, at the ends of the range, too") {
  for (const int64_t experts : {1, 2, 3, 7, 64, 512}) {
    for (const double exponent : {0.0, 0.5, 1.0, 4.0, kMostExponent}) {
      const auto shares = zipf_shares(experts, exponent);
      CHECK(std::accumulate(shares.begin(), shares.end(), 0.0) == Approx(1).epsilon(1e-12));
      CHECK(std::is_sorted(shares.rbegin(), shares.rend()));
    }
    CHECK(zipf_exponent(experts, 1.0 / static_cast<double>(experts)) < 1e-6);
  }
  CHECK(zipf_exponent(8, 1) == kMostExponent);
  CHECK(skew_of_shares(zipf_shares(8, kMostExponent)) == 1);
}

TEST_CASE("apportion: by hand") {
  CHECK(apportion(std::vector{1.0, 1.0, 1.0}, 10) == Counts{4, 3, 3});
  CHECK(apportion(std::vector{0.5, 0.3, 0.2}, 7) == Counts{4, 2, 1});  // 3.5 2.1 1.4
  CHECK(apportion(std::vector{47.0, 16.0, 15.8, 12.0, 6.1, 3.1}, 10) == Counts{5, 2, 1, 1, 1, 0});
  CHECK(apportion(std::vector{0.0, 0.0}, 5) == Counts{3, 2});
  CHECK(apportion(std::vector{3.0, 0.0}, 5) == Counts{5, 0});
  // The first takes no more than two; the rest is divided 3 to 1.
  CHECK(apportion(std::vector{90.0, 3.0, 1.0}, 10, Counts{2, 100, 100}) == Counts{2, 6, 2});
  CHECK(apportion(std::vector{5.0, 1.0}, 3, Counts{1, 2}) == Counts{1, 2});
  CHECK_THROWS_AS(apportion(std::vector{5.0, 1.0}, 4, Counts{1, 2}), std::logic_error);
}

TEST_CASE("apportion: parts add up, stay near their quotas and below their caps") {
  std::mt19937_64 random(1);
  const auto draw = [&](int64_t most) {
    return std::uniform_int_distribution<int64_t>(0, most)(random);
  };
  for (int round = 0; round < 3000; ++round) {
    const auto n = static_cast<size_t>(1 + draw(20));
    std::vector<double> weights;
    Counts caps;
    for (size_t i = 0; i < n; ++i) {
      weights.push_back(draw(3) == 0 ? 0 : static_cast<double>(draw(1000)));
      caps.push_back(draw(50));
    }
    const int64_t total = draw(1'000'000);
    const Counts parts = apportion(weights, total);
    CHECK(sum(parts) == total);
    const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (size_t i = 0; i < n && all > 0; ++i) {
      const double quota = static_cast<double>(total) * weights[i] / all;
      REQUIRE(std::abs(static_cast<double>(parts[i]) - quota) < 1 + 1e-6);
    }
    const int64_t held = draw(sum(caps));
    const Counts capped = apportion(weights, held, caps);
    CHECK(sum(capped) == held);
    for (size_t i = 0; i < n; ++i) REQUIRE((capped[i] >= 0 && capped[i] <= caps[i]));
  }
}

TEST_CASE("popularity: the skew of counts is what was asked") {
  std::mt19937_64 random(2);
  for (int round = 0; round < 400; ++round) {
    const int64_t experts = 1 + static_cast<int64_t>(random() % 256);
    const int64_t top_k = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(experts));
    const double least = 1 / static_cast<double>(experts);
    const double part = static_cast<double>(random() % 1001) / 1000;
    const double skew = least + part * part * (1 - least);
    const int64_t tokens = round % 2 == 0 ? tokens_for_skew(experts, skew) : 1'000'003;
    INFO(experts << " experts, top " << top_k << ", skew " << skew << ", " << tokens << " tokens");
    const Popularity p = zipf_popularity(experts, top_k, tokens, skew);
    REQUIRE(has_skew(p.first, skew));
    REQUIRE(std::abs(skew_of(p.first) / skew - 1) <= .02);
    REQUIRE(sum(p.first) == tokens);
    REQUIRE(std::is_sorted(p.first.rbegin(), p.first.rend()));
    REQUIRE(sum(p.all) == tokens * top_k);
    REQUIRE(skew_of(p.all) <= (1 + 1e-12) / static_cast<double>(top_k));
    for (size_t e = 0; e < p.all.size(); ++e) {
      REQUIRE((p.all[e] >= p.first[e] && p.all[e] <= tokens));
    }
    if (top_k == 1) CHECK(p.all == p.first);
    if (top_k == experts) CHECK(p.all == Counts(p.all.size(), tokens));
  }
}

TEST_CASE("popularity: later choices, by hand") {
  // Shares of exponent 0: all alike, whatever the choice.
  CHECK(zipf_popularity(4, 2, 8, .25).all == Counts{4, 4, 4, 4});
  // All tokens take the first expert first; the others share the second choice.
  const Popularity one = zipf_popularity(3, 2, 9, 1);
  CHECK(one.first == Counts{9, 0, 0});
  CHECK(one.all[0] == 9);
  CHECK(one.all[1] + one.all[2] == 9);
}

TEST_CASE("popularity: a few tokens cannot have every skew") {
  CHECK_FALSE(has_skew(zipf_popularity(64, 1, 10, .02).first, .02));
  CHECK(has_skew(zipf_popularity(64, 1, tokens_for_skew(64, .02), .02).first, .02));
  CHECK(tokens_for_skew(8, 1) == 1);
}

}  // namespace
}  // namespace hearth::test
