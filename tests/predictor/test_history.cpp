// History and the oracle: what past counts foretell.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "base/error.h"
#include "predictor/history.h"
#include "predictor/oracle.h"
#include "predictor/predictor_state.h"

namespace hearth::test {
namespace {

using Catch::Approx;
using Counts = std::vector<int64_t>;

constexpr RoutedShape kTwoLayers{.layers = 2, .experts = 4, .top_k = 2};

TEST_CASE("history: the last step alone, or earlier steps with a decay") {
  PopularityHistory last(kTwoLayers), decayed(kTwoLayers, .5);
  for (PopularityHistory* h : {&last, &decayed}) {
    h->add(0, Counts{4, 0, 2, 2});
    h->add(0, Counts{4, 0, 0, 4});  // another micro-batch
    h->add(1, Counts{0, 8, 0, 0});
    CHECK(h->popularity(0)[0] == 0);  // not before the end of the step
    h->end_step();
    CHECK(h->popularity(0)[0] == 8);
    CHECK(h->popularity(0)[3] == 6);
    h->add(0, Counts{0, 6, 1, 1});
    h->end_step();
  }
  CHECK(std::vector<double>(last.popularity(0).begin(), last.popularity(0).end()) ==
        std::vector<double>{0, 6, 1, 1});
  CHECK(std::vector<double>(decayed.popularity(0).begin(), decayed.popularity(0).end()) ==
        std::vector<double>{4, 6, 1 + 1, 1 + 3});
  // A step in which a layer did not run leaves its history.
  CHECK(last.popularity(1)[1] == 8);
  CHECK(decayed.popularity(1)[1] == 8);
}

TEST_CASE("history: rank by rank across layers, equals by number") {
  PopularityHistory history({.layers = 3, .experts = 3, .top_k = 1});
  history.add(0, Counts{1, 5, 3});
  history.add(1, Counts{7, 7, 9});
  history.end_step();
  CHECK(history.ranking(0) == std::vector<int32_t>{1, 2, 0});
  CHECK(history.ranking(1) == std::vector<int32_t>{2, 0, 1});
  CHECK(history.ranking(2) == std::vector<int32_t>{0, 1, 2});  // no history
  const std::vector<LayerRank> expected = {{0, 1}, {1, 2}, {0, 2}, {1, 0}, {0, 0}, {1, 1}};
  CHECK(history.by_rank(0, 2) == expected);
  CHECK(history.by_rank(1, 1).empty());
}

TEST_CASE("history: foretells in proportion, evenly without history") {
  const Pool pool(1);
  HistoryPredictor predictor(kTwoLayers);
  const RoutedBatch batch{.layer = 1, .tokens = 10};
  CHECK(predictor.predict(batch, {}, pool).tokens == std::vector<double>{5, 5, 5, 5});
  predictor.learn(batch, {.counts = Counts{30, 10, 0, 0}});
  CHECK(predictor.predict(batch, {}, pool).tokens == std::vector<double>{5, 5, 5, 5});
  predictor.end_step(pool);
  const Prediction prediction = predictor.predict(batch, {}, pool);
  CHECK(prediction.tokens == std::vector<double>{15, 5, 0, 0});
  CHECK(prediction.rows.empty());
  CHECK_FALSE(predictor.source(1));
  // A sample of the data stands in for a step.
  predictor.history().start(0, std::vector<double>{0, 0, 1, 1});
  CHECK(predictor.predict({.layer = 0, .tokens = 2}, {}, pool).tokens ==
        std::vector<double>{0, 0, 2, 2});
}

TEST_CASE("history: its state is all it knows, and bad state is refused") {
  const Pool pool(1);
  HistoryPredictor one(kTwoLayers, .3), other(kTwoLayers, .3);
  const auto step = [&](HistoryPredictor& p, int64_t more) {
    p.learn({.layer = 0, .tokens = 5}, {.counts = Counts{more, 3, 2, 1}});
    p.end_step(pool);
  };
  step(one, 4), step(one, 1);
  load(other, saved(one));
  step(one, 9), step(other, 9);
  CHECK(saved(one) == saved(other));

  for (const double bad : {-1.0, static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
    StateBytes bytes = saved(one);
    auto* numbers = reinterpret_cast<double*>(bytes.at("popularity/tokens").data());
    numbers[3] = bad;
    CHECK_THROWS_AS(load(other, bytes), Error);
  }
}

TEST_CASE("history: wrong shapes are bugs") {
  PopularityHistory history(kTwoLayers);
  CHECK_THROWS_AS(history.add(2, Counts(4)), std::logic_error);
  CHECK_THROWS_AS(history.add(0, Counts(3)), std::logic_error);
  CHECK_THROWS_AS(history.popularity(-1), std::logic_error);
  CHECK_THROWS_AS(PopularityHistory(kTwoLayers, 1), std::logic_error);
}

TEST_CASE("oracle: foretells what it was given") {
  const Counts even{1, 2, 3, 4}, odd{4, 3, 2, 1};
  const OraclePredictor oracle([&](const RoutedBatch& b) -> std::span<const int64_t> {
    return (b.step + b.micro_batch) % 2 == 0 ? even : odd;
  });
  const Pool pool(1);
  CHECK(oracle.predict({.step = 3, .micro_batch = 1}, {}, pool).tokens ==
        std::vector<double>{1, 2, 3, 4});
  CHECK(oracle.predict({.step = 3, .micro_batch = 2}, {}, pool).tokens ==
        std::vector<double>{4, 3, 2, 1});
}

}  // namespace
}  // namespace hearth::test
