// Synthetic routing: persistence, the predictor's noise, repeatability.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <random>

#include "predictor/foretell.h"
#include "predictor/persistence.h"
#include "predictor/popularity.h"
#include "predictor/synthetic_routing.h"

namespace hearth::test {
namespace {

using Catch::Approx;
using Counts = std::vector<int64_t>;

/// Persistence said another way: pairs of experts and numbers, sorted.
double plain_persistence(const SyntheticRouting& routing) {
  const RoutingRequest& r = routing.request();
  const auto least = [](std::span<const int64_t> counts, size_t n) {
    std::vector<std::pair<int64_t, size_t>> pairs;
    for (size_t e = 0; e < counts.size(); ++e) pairs.emplace_back(counts[e], e);
    std::sort(pairs.begin(), pairs.end());
    std::vector<size_t> experts;
    for (size_t i = 0; i < n; ++i) experts.push_back(pairs[i].second);
    std::sort(experts.begin(), experts.end());
    return experts;
  };
  const auto quarter = static_cast<size_t>(std::max<int64_t>(r.experts / 4, 1));
  const auto more = static_cast<size_t>(std::max<int64_t>(r.experts * 3 / 8, 1));
  double found = 0, all = 0;
  for (int64_t s = 1; s < r.steps; ++s) {
    for (int64_t l = 0; l < r.layers; ++l) {
      const auto a = least(routing.first(s - 1, l), quarter), b = least(routing.first(s, l), more);
      std::vector<size_t> both;
      std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
      found += static_cast<double>(both.size());
      all += static_cast<double>(quarter);
    }
  }
  return found / all;
}

TEST_CASE("routing: skew and persistence are what was asked, over many sizes") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 150; ++round) {
    RoutingRequest r;
    r.experts = 4 + static_cast<int64_t>(random() % 125);
    r.top_k = 1 + static_cast<int64_t>(random() % 4);
    const double least = 1 / static_cast<double>(r.experts);
    // Not at the ends of the range, where experts have equal counts and cannot change ranks.
    r.skew = least * (1.5 + static_cast<double>(random() % 100) / 25);
    r.skew = std::min(r.skew, .6);
    r.tokens = 1 << 20;
    r.layers = 1 + static_cast<int64_t>(random() % 4);
    r.steps = 2 + static_cast<int64_t>(random() % 6);
    r.persistence = static_cast<double>(random() % 101) / 100;
    r.seed = random();
    const SyntheticRouting routing(r);
    INFO(r.experts << " experts, top " << r.top_k << ", skew " << r.skew << ", persistence "
                   << r.persistence);
    CHECK(routing.first_skew() == Approx(r.skew).epsilon(.02));
    CHECK(routing.all_skew() <= 1 / static_cast<double>(r.top_k));
    // To one expert in all transitions together.
    const double experts =
        static_cast<double>((r.steps - 1) * r.layers * std::max<int64_t>(r.experts / 4, 1));
    REQUIRE(routing.persistence());
    CHECK(std::abs(*routing.persistence() - r.persistence) <= .5 / experts + 1e-9);
    CHECK(*routing.persistence() == Approx(plain_persistence(routing)).margin(1e-12));
    for (int64_t s = 0; s < r.steps; ++s) {
      for (int64_t l = 0; l < r.layers; ++l) {
        const auto first = routing.first(s, l), all = routing.all(s, l);
        REQUIRE(std::accumulate(first.begin(), first.end(), int64_t{0}) == r.tokens);
        REQUIRE(std::accumulate(all.begin(), all.end(), int64_t{0}) == r.tokens * r.top_k);
        REQUIRE(*std::max_element(all.begin(), all.end()) <= r.tokens);
      }
    }
  }
}

TEST_CASE("routing: few tokens, many equal counts") {
  for (const double persistence : {0.0, .375, .733, 1.0}) {
    const SyntheticRouting routing({.experts = 64,
                                    .top_k = 2,
                                    .skew = .2,
                                    .tokens = 4096,
                                    .layers = 4,
                                    .steps = 10,
                                    .persistence = persistence});
    INFO(persistence);
    CHECK(std::abs(*routing.persistence() - persistence) < .02);
  }
  // All experts have equal counts, so that numbers alone make the order: nothing can change.
  const SyntheticRouting even(
      {.experts = 8, .skew = .125, .tokens = 800, .steps = 3, .persistence = .5});
  CHECK(even.persistence() == 1.0);
  // One expert, and one step.
  CHECK(SyntheticRouting({.experts = 1, .skew = 1, .tokens = 5, .steps = 2, .persistence = 0})
            .persistence() == 1.0);
  CHECK_FALSE(SyntheticRouting({.experts = 8, .skew = .3, .tokens = 800}).persistence());
}

TEST_CASE("routing: the correlation of scores gives the persistence without a correction") {
  CHECK(score_correlation(.375) == Approx(0).margin(1e-3));
  CHECK(score_correlation(1) == 1);
  CHECK(score_correlation(0) == -1);
  double last = -1;
  for (const double p : {.1, .3, .5, .733, .9, .99}) {
    const double correlation = score_correlation(p);
    CHECK(correlation > last);
    last = correlation;
    // Pairs of correlated scores, drawn here.
    std::mt19937_64 engine(7);
    std::normal_distribution<double> normal;
    int64_t low = 0, lasting = 0;
    for (int i = 0; i < 200'000; ++i) {
      const double x = normal(engine);
      const double y = correlation * x + std::sqrt(1 - correlation * correlation) * normal(engine);
      if (x >= -.6744898) continue;
      ++low;
      lasting += y < -.3186394 ? 1 : 0;
    }
    CHECK(static_cast<double>(lasting) / static_cast<double>(low) == Approx(p).margin(.008));
  }
}

TEST_CASE("routing: a request gives the same counts, a seed and a layer their own") {
  RoutingRequest r{.experts = 16,
                   .top_k = 2,
                   .skew = .2,
                   .tokens = 10'000,
                   .layers = 3,
                   .steps = 4,
                   .persistence = .7,
                   .seed = 11,
                   .token_hit = .8};
  const auto counts = [](const SyntheticRouting& routing, int64_t steps, int64_t layers) {
    std::vector<Counts> all;
    for (int64_t s = 0; s < steps; ++s) {
      for (int64_t l = 0; l < layers; ++l) {
        for (const auto row : {routing.first(s, l), routing.all(s, l), routing.predicted(s, l)}) {
          all.emplace_back(row.begin(), row.end());
        }
      }
    }
    return all;
  };
  const SyntheticRouting routing(r);
  const auto first = counts(routing, 4, 3);
  CHECK(first == counts(SyntheticRouting(r), 4, 3));
  CHECK(Counts(routing.first(0, 0).begin(), routing.first(0, 0).end()) !=
        Counts(routing.first(0, 1).begin(), routing.first(0, 1).end()));
  r.seed = 12;
  CHECK(first != counts(SyntheticRouting(r), 4, 3));
}

TEST_CASE("routing: a step keeps hot experts hot, the more the higher the persistence") {
  const auto kept = [](double persistence) {
    const SyntheticRouting routing({.experts = 64,
                                    .skew = .1,
                                    .tokens = 1 << 20,
                                    .layers = 8,
                                    .steps = 10,
                                    .persistence = persistence,
                                    .seed = 5});
    double found = 0;
    for (int64_t s = 1; s < 10; ++s) {
      for (int64_t l = 0; l < 8; ++l) {
        const auto a = least_popular_first(routing.first(s - 1, l));
        const auto b = least_popular_first(routing.first(s, l));
        for (size_t i = 48; i < 64; ++i) found += std::count(b.begin() + 40, b.end(), a[i]) != 0;
      }
    }
    return found / (9 * 8 * 16);
  };
  const double little = kept(.4), more = kept(.7), most = kept(.95);
  CHECK(little < more);
  CHECK(more < most);
  CHECK(kept(1) == 1);
}

TEST_CASE("foretell: hits are what was asked, no choice is lost") {
  std::mt19937_64 random(4);
  for (int round = 0; round < 500; ++round) {
    const auto experts = 1 + static_cast<size_t>(random() % 64);
    const int64_t tokens = 1 + static_cast<int64_t>(random() % 5000);
    Counts counts(experts, 0);
    for (int64_t i = 0; i < tokens; ++i) ++counts[std::min(random() % experts, random() % experts)];
    const double hit = static_cast<double>(random() % 101) / 100;
    const Foretold f = foretell(counts, tokens, hit, Random(random(), RandomSite::predictor));
    CHECK(std::accumulate(f.counts.begin(), f.counts.end(), int64_t{0}) == tokens);
    CHECK(*std::max_element(f.counts.begin(), f.counts.end()) <= tokens);
    if (experts == 1) {
      CHECK(f.hits == tokens);
      continue;
    }
    CHECK(std::abs(static_cast<double>(f.hits) - hit * static_cast<double>(tokens)) <= .5);
    int64_t most = 0;  // no more can have been right
    for (size_t e = 0; e < experts; ++e) most += std::min(counts[e], f.counts[e]);
    CHECK(f.hits <= most);
    if (hit == 1) CHECK(f.counts == counts);
  }
}

TEST_CASE("routing: a predictor is measured as it was asked for") {
  const SyntheticRouting routing({.experts = 32,
                                  .top_k = 2,
                                  .skew = .1,
                                  .tokens = 8192,
                                  .layers = 2,
                                  .steps = 3,
                                  .persistence = .7,
                                  .seed = 1,
                                  .token_hit = .85});
  CHECK(*routing.token_hit() == Approx(.85).margin(1e-3));
  CHECK(*routing.foretold_least() > .375);
  CHECK(*routing.foretold_least() < 1);
  const SyntheticRouting oracle({.experts = 32, .skew = .1, .tokens = 8192, .token_hit = 1});
  CHECK(*oracle.foretold_least() == 1);
  CHECK_FALSE(SyntheticRouting({.experts = 32, .skew = .1, .tokens = 8192}).token_hit());
}

}  // namespace
}  // namespace hearth::test
