// Measures of predictions: by hand, and on synthetic routing that lasts, drifts or is random.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <optional>

#include "base/error.h"
#include "predictor/history.h"
#include "predictor/oracle.h"
#include "predictor/persistence.h"
#include "predictor/prediction_score.h"
#include "predictor/synthetic_routing.h"

namespace hearth::test {
namespace {

using Catch::Approx;
using Counts = std::vector<int64_t>;

TEST_CASE("score: token hits by hand") {
  PredictionScore score;
  CHECK_FALSE(score.token_hit());
  CHECK_FALSE(score.least_quarter());
  CHECK_FALSE(score.byte_hit());
  // Tokens 0 and 2 of three were foretold: one of two choices right, then both, in another order.
  const Prediction choices{.tokens = {2, 1, 1, 0}, .rows = {0, 2}, .choices = {0, 1, 2, 0}};
  score.add(choices, 2, Counts{3, 1, 1, 1}, std::vector<int32_t>{0, 3, 0, 1, 0, 2});
  CHECK(*score.token_hit() == .75);
  // Counts alone: the two most popular experts, of which 5 of 8 choices are.
  PredictionScore counts;
  counts.add({.tokens = {5, 1, 4, 1}, .rows = {}, .choices = {}}, 2, Counts{3, 1, 2, 2});
  CHECK(*counts.token_hit() == 5.0 / 8);
  score.add(counts);
  CHECK(*score.token_hit() == 9.5 / 14);
  score.add({.tokens = {1, 1, 1, 1}, .rows = {}, .choices = {}}, 2, Counts(4));  // no tokens
  CHECK(*score.token_hit() == 9.5 / 14);
  CHECK_THROWS_AS(score.add(choices, 2, Counts{3, 1, 1, 1}, std::vector<int32_t>{0, 3, 0, 1}),
                  std::logic_error);
}

TEST_CASE("score: the least quarter of 16 experts among the least six foretold, by hand") {
  std::vector<double> real(16), foretold(16);
  for (size_t e = 0; e < 16; ++e) real[e] = static_cast<double>(e);  // 0 to 3 are the least
  for (size_t e = 0; e < 16; ++e) foretold[e] = static_cast<double>(e < 5 ? 20 - e : e);
  // Least foretold: 5 to 10; so none of the least.
  PredictionScore none;
  none.add_ranks(foretold, real);
  CHECK(*none.least_quarter() == 0);
  foretold[2] = 0, foretold[3] = 1;
  PredictionScore half;
  half.add_ranks(foretold, real);
  CHECK(*half.least_quarter() == .5);
  half.add_ranks(real, real);
  CHECK(*half.least_quarter() == .75);
}

TEST_CASE("score: bytes of experts that computed on a device") {
  PredictionScore score;
  const std::vector<uint8_t> foretold = {1, 1, 0, 0, 1}, used = {1, 0, 1, 0, 1};
  score.add_loads(foretold, used, std::vector<double>{10, 20, 30, 40, 60});
  CHECK(*score.byte_hit() == Approx(.7));
}

/// History as a predictor of synthetic routing, from the second step on.
PredictionScore score_of_history(const SyntheticRouting& routing, double decay) {
  const RoutingRequest& r = routing.request();
  const Pool pool(1);
  HistoryPredictor history(
      {.layers = static_cast<int32_t>(r.layers), .experts = r.experts, .top_k = 1}, decay);
  PredictionScore score;
  for (int64_t step = 0; step < r.steps; ++step) {
    for (int32_t layer = 0; layer < r.layers; ++layer) {
      const RoutedBatch batch{.step = step, .layer = layer, .tokens = r.tokens};
      const auto counts = routing.first(step, layer);
      if (step > 0) score.add(history.predict(batch, {}, pool), 1, counts);
      history.learn(batch, {.counts = counts});
    }
    history.end_step(pool);
  }
  return score;
}

SyntheticRouting routing_with(double persistence, std::optional<double> token_hit = {}) {
  return SyntheticRouting({.experts = 64,
                           .top_k = 1,
                           .skew = .08,
                           .tokens = 65536,
                           .layers = 6,
                           .steps = 30,
                           .persistence = persistence,
                           .seed = 17,
                           .token_hit = token_hit});
}

TEST_CASE("history foretells a routing that lasts, and not one that does not") {
  // Persistence asks where the least popular experts go, the measure where they come from. In a
  // process that runs the same both ways, these are equal but for chance.
  for (const double persistence : {1.0, .9, .733, .5}) {
    const PredictionScore score = score_of_history(routing_with(persistence), 0);
    CHECK(*score.least_quarter() == Approx(persistence).margin(.02));
  }
  const PredictionScore lasting = score_of_history(routing_with(1), 0),
                        random = score_of_history(routing_with(.375), 0);
  CHECK(*lasting.least_quarter() == 1);
  CHECK(*random.least_quarter() == Approx(.375).margin(.01));
  // The most popular expert has this share of the tokens; by chance it is as likely as any other.
  const SyntheticRouting routing = routing_with(1);
  const auto counts = routing.first(0, 0);
  const double top = static_cast<double>(*std::max_element(counts.begin(), counts.end())) / 65536;
  CHECK(*lasting.token_hit() == Approx(top));
  CHECK(*random.token_hit() < .5 * top);
}

TEST_CASE("the oracle foretells all, a predictor with noise less, noise alone nothing") {
  const Pool pool(1);
  for (const double hit : {0.0, .64, .85, 1.0}) {
    const SyntheticRouting routing = routing_with(.733, hit);
    const OraclePredictor oracle(
        [&](const RoutedBatch& b) { return routing.first(b.step, b.layer); });
    const OraclePredictor noisy(
        [&](const RoutedBatch& b) { return routing.predicted(b.step, b.layer); });
    PredictionScore best, score;
    for (int64_t step = 0; step < 30; ++step) {
      for (int32_t layer = 0; layer < 6; ++layer) {
        const RoutedBatch batch{.step = step, .layer = layer, .tokens = 65536};
        best.add(oracle.predict(batch, {}, pool), 1, routing.first(step, layer));
        score.add(noisy.predict(batch, {}, pool), 1, routing.first(step, layer));
      }
    }
    INFO(hit << " " << *score.least_quarter());
    CHECK(*best.least_quarter() == 1);
    // simulate routing measures the same.
    CHECK(*score.least_quarter() == Approx(*routing.foretold_least()));
    if (hit == 1) CHECK(*score.least_quarter() == 1);
    if (hit == 0) CHECK(*score.least_quarter() == Approx(.375).margin(.05));
    if (hit == .85) CHECK(*score.least_quarter() > .6);
  }
}

TEST_CASE("a decay remembers through noise that the last step alone does not see") {
  // Popularity that stays, seen through few tokens.
  const RoutedShape shape{.layers = 1, .experts = 32, .top_k = 1};
  const Pool pool(1);
  const auto score_with = [&](double decay) {
    HistoryPredictor history(shape, decay);
    PredictionScore score;
    for (int64_t step = 0; step < 200; ++step) {
      Counts counts(32);
      const Random random(5, RandomSite::routing, static_cast<uint32_t>(step));
      for (uint64_t t = 0; t < 200; ++t) {
        const auto e = static_cast<size_t>(32 * random.uniform(t) * random.uniform(t + 1000));
        ++counts[e];
      }
      const RoutedBatch batch{.step = step, .layer = 0, .tokens = 200};
      if (step > 20) score.add(history.predict(batch, {}, pool), 1, counts);
      history.learn(batch, {.counts = counts});
      history.end_step(pool);
    }
    return *score.least_quarter();
  };
  CHECK(score_with(.9) > score_with(0) + .02);
}

}  // namespace
}  // namespace hearth::test
