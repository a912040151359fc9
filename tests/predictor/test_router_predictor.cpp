// The online predictors: what they learn, that their bits depend on nothing else, and their state.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.h"
#include "predictor/group_counts.h"
#include "predictor/prediction_score.h"
#include "predictor/predictor_state.h"
#include "predictor/routed_world.h"
#include "predictor/router_predictor.h"

namespace hearth::test {
namespace {

using Catch::Approx;

constexpr RoutedShape kShape{.layers = 4, .experts = 16, .top_k = 2};
constexpr int64_t kHidden = 32, kTokens = 96;

RouterPredictorSettings settings(int32_t ahead = 1) {
  RouterPredictorSettings s;
  s.hidden = kHidden;
  s.ahead = ahead;
  s.training_rows = 96;
  s.batch_rows = 32;
  return s;
}

enum class Start { router, zero };

RouterPredictor made(const RoutedWorld& world, const RouterPredictorSettings& s, Start start) {
  RouterPredictor predictor(kShape, s);
  for (int32_t layer = s.ahead; layer < kShape.layers && start == Start::router; ++layer) {
    predictor.start(layer, world.router(layer));
  }
  return predictor;
}

/// Runs the micro-batches of a step in this order. Scores the layers that have a source.
PredictionScore run_step(RouterPredictor& predictor, const RoutedWorld& world, int64_t step,
                         const std::vector<int32_t>& order, const Pool& pool) {
  PredictionScore score;
  for (const int32_t m : order) {
    const auto layers = world.micro_batch(step, m, kTokens);
    for (int32_t l = kShape.layers; l-- > 0;) {  // any order of layers
      const auto& layer = layers[static_cast<size_t>(l)];
      const RoutedBatch batch{.step = step,
                              .layer = l,
                              .micro_batch = m,
                              .micro_batches = static_cast<int32_t>(order.size()),
                              .tokens = kTokens};
      const auto source = predictor.source(l);
      const std::span<const float> rows =
          source ? layers[static_cast<size_t>(source->layer)].rows : std::span<const float>();
      const Prediction prediction = predictor.predict(batch, rows, pool);
      if (source) score.add(prediction, kShape.top_k, layer.counts, layer.choices);
      predictor.learn(batch, layer.routed(rows));
    }
  }
  predictor.end_step(pool);
  return score;
}

double hit_after(RouterPredictor& predictor, const RoutedWorld& world, int64_t steps) {
  const Pool pool(1);
  double last = 0;
  for (int64_t step = 1; step <= steps; ++step) {
    last = *run_step(predictor, world, step, {0, 1}, pool).token_hit();
  }
  return last;
}

TEST_CASE("router predictor: sources") {
  for (int32_t ahead = 1; ahead <= 4; ++ahead) {
    const RouterPredictor predictor({.layers = 6, .experts = 4, .top_k = 1}, settings(ahead));
    for (int32_t l = 0; l < 6; ++l) {
      const auto source = predictor.source(l);
      CHECK(source.has_value() == (l >= ahead));
      if (source) CHECK(*source == PredictorSource{PredictorInput::router, l - ahead});
    }
  }
  RouterPredictorSettings s = settings();
  s.input = PredictorInput::layer;
  const RouterPredictor before(kShape, s);
  CHECK(before.source(0) == PredictorSource{PredictorInput::layer, 0});
  s.ahead = 5;
  CHECK_THROWS_AS(RouterPredictor(kShape, s), std::logic_error);
}

TEST_CASE("router predictor: the router's own weights foretell what hidden states keep") {
  const Pool pool(1);
  double last = 0;
  for (const double keep : {0.0, .7, .95, .999}) {
    const RoutedWorld world(kShape, kHidden, keep, 3);
    RouterPredictor predictor = made(world, settings(), Start::router);
    const double hit = *run_step(predictor, world, 1, {0, 1, 2, 3}, pool).token_hit();
    if (keep == 0) CHECK(hit < .2);  // chance: 2 of 16
    CHECK(hit > last);
    last = hit;
  }
  CHECK(last > .9);
}

TEST_CASE("router predictor: training finds what weights without a start do not know") {
  const RoutedWorld world(kShape, kHidden, .95, 3);
  RouterPredictor blank = made(world, settings(), Start::zero);
  RouterPredictor router = made(world, settings(), Start::router);
  const double best = hit_after(router, world, 1);
  const double before = hit_after(blank, world, 1), loss = blank.loss();
  const double after = hit_after(blank, world, 300);
  INFO(before << " " << after << " " << best << " " << loss << " " << blank.loss());
  CHECK(before < .2);
  CHECK(after > .8 * best);
  CHECK(blank.loss() < .7 * loss);
}

TEST_CASE("router predictor: two steps of training are what the rule says, batch after batch") {
  const RoutedShape shape{.layers = 2, .experts = 4, .top_k = 1};
  const RoutedWorld world(shape, kHidden, .5, 23);
  const Pool pool(2);
  RouterPredictorSettings s = settings();
  s.training_rows = 40;
  s.batch_rows = 16;
  RouterPredictor predictor(shape, s);
  predictor.start(1, world.router(1));
  std::vector<double> rows, probs;
  for (int64_t step = 1; step <= 2; ++step) {
    for (int32_t m = 0; m < 2; ++m) {
      // 20 rows of 60 tokens, or 8 of 8: the last batch is smaller.
      const int64_t tokens = step == 2 && m == 1 ? 8 : 60;
      const auto layers = world.micro_batch(step, m, tokens);
      for (const int32_t t : spread_rows(tokens, 20)) {
        const auto row =
            std::span(layers[0].rows).subspan(static_cast<size_t>(t) * kHidden, kHidden);
        const auto p = std::span(layers[1].probs).subspan(static_cast<size_t>(t) * 4, 4);
        rows.insert(rows.end(), row.begin(), row.end());
        probs.insert(probs.end(), p.begin(), p.end());
      }
      predictor.learn(
          {.step = step, .layer = 1, .micro_batch = m, .micro_batches = 2, .tokens = tokens},
          layers[1].routed(layers[0].rows));
    }
    predictor.end_step(pool);
    // Batches of 16, 16 and 8 rows, then of 16 and 12: each step begins a batch of its own.
    if (step == 1) CHECK(rows.size() == 40 * kHidden);
  }
  REQUIRE(rows.size() == 68 * kHidden);
  // AdamW without decay by the mean gradient of each batch, in f64.
  const std::vector<double> start(world.router(1).begin(), world.router(1).end());
  std::vector<double> weight = start, m(start.size()), v(start.size());
  const std::vector<std::pair<size_t, size_t>> batches = {
      {0, 16}, {16, 32}, {32, 40}, {40, 56}, {56, 68}};
  int updates = 0;
  for (const auto& batch : batches) {
    const size_t n = batch.second - batch.first;
    std::vector<double> gradient(weight.size());
    for (size_t t = batch.first; t < batch.second; ++t) {
      std::vector<double> d(4);
      soft_logits<double>(weight, std::span<const double>(rows).subspan(t * kHidden, kHidden), d);
      soft_cross_entropy<double>(d, std::span<const double>(probs).subspan(t * 4, 4),
                                 1 / static_cast<double>(n), d);
      for (size_t i = 0; i < gradient.size(); ++i) {
        gradient[i] += d[i / kHidden] * rows[t * kHidden + i % kHidden];
      }
    }
    ++updates;
    for (size_t i = 0; i < weight.size(); ++i) {
      m[i] = .9 * m[i] + .1 * gradient[i];
      v[i] = .999 * v[i] + .001 * gradient[i] * gradient[i];
      weight[i] -= s.lr * (m[i] / (1 - std::pow(.9, updates))) /
                   (std::sqrt(v[i] / (1 - std::pow(.999, updates))) + 1e-8);
    }
  }
  double moved = 0, worst = 0;
  for (size_t i = 0; i < weight.size(); ++i) {
    moved = std::max(moved, std::abs(weight[i] - start[i]));
    worst = std::max(worst, std::abs(static_cast<double>(predictor.weight(1)[i]) - weight[i]));
  }
  CHECK(moved > 1e-3);
  CHECK(worst < 1e-5);
  // A step in which nothing was learned changes nothing.
  const StateBytes before = saved(predictor);
  predictor.end_step(pool);
  CHECK(saved(predictor) == before);
}

TEST_CASE("router predictor: four layers ahead foretell less than one") {
  const RoutedShape shape{.layers = 6, .experts = 16, .top_k = 2};
  const RoutedWorld world(shape, kHidden, .95, 5);
  const Pool pool(1);
  const auto layers = world.micro_batch(1, 0, 256);
  double last = 1;
  for (int32_t ahead = 1; ahead <= 4; ++ahead) {
    RouterPredictor predictor(shape, settings(ahead));
    predictor.start(5, world.router(5));
    PredictionScore score;
    const RoutedBatch batch{.layer = 5, .tokens = 256};
    score.add(predictor.predict(batch, layers[static_cast<size_t>(5 - ahead)].rows, pool), 2,
              layers[5].counts, layers[5].choices);
    CHECK(*score.token_hit() < last);
    last = *score.token_hit();
  }
  CHECK(last > .3);
}

TEST_CASE("router predictor: bits depend neither on workers nor on the order of micro-batches") {
  const RoutedWorld world(kShape, kHidden, .9, 7);
  StateBytes expected;
  std::vector<std::vector<int32_t>> orders = {{0, 1, 2}, {2, 0, 1}, {1, 2, 0}};
  for (const int workers : {1, 2, 5}) {
    const Pool pool(workers);
    RouterPredictor predictor = made(world, settings(), Start::router);
    for (int64_t step = 1; step <= 3; ++step) {
      run_step(predictor, world, step, orders[static_cast<size_t>((workers + step) % 3)], pool);
    }
    if (expected.empty()) {
      expected = saved(predictor);
    } else {
      CHECK(saved(predictor) == expected);
    }
  }
}

TEST_CASE("router predictor: predictions within a step come from its beginning") {
  const RoutedWorld world(kShape, kHidden, .9, 7);
  const Pool pool(1);
  RouterPredictor predictor = made(world, settings(), Start::zero);
  run_step(predictor, world, 1, {0}, pool);
  const auto layers = world.micro_batch(2, 0, kTokens);
  const RoutedBatch batch{.step = 2, .layer = 2, .tokens = kTokens};
  const Prediction before = predictor.predict(batch, layers[1].rows, pool);
  predictor.learn(batch, layers[2].routed(layers[1].rows));
  const Prediction during = predictor.predict(batch, layers[1].rows, pool);
  CHECK(before.choices == during.choices);
  for (int64_t step = 2; step < 40; ++step) run_step(predictor, world, step, {0}, pool);
  CHECK(before.choices != predictor.predict(batch, layers[1].rows, pool).choices);
}

TEST_CASE("router predictor: its state is all it knows") {
  const RoutedWorld world(kShape, kHidden, .9, 11);
  const Pool pool(2);
  const auto steps = [&](RouterPredictor& p, int64_t begin, int64_t end) {
    for (int64_t step = begin; step < end; ++step) run_step(p, world, step, {0, 1}, pool);
  };
  RouterPredictor one = made(world, settings(), Start::router);
  steps(one, 1, 4);
  const StateBytes state = saved(one);
  CHECK(state.size() == 5);
  steps(one, 4, 6);
  const auto resumed = [&](const StateBytes& from) {
    RouterPredictor other = made(world, settings(), Start::zero);
    load(other, from);
    steps(other, 4, 6);
    return saved(other);
  };
  CHECK(resumed(state) == saved(one));
  for (const auto& [name, bytes] : state) {
    if (name == "popularity/tokens") continue;  // of the last step alone: steps 4 and 5 replace it
    INFO(name);
    StateBytes less = state;
    less.erase(name);
    CHECK(resumed(less) != saved(one));
  }
  StateBytes bad = state;
  reinterpret_cast<int64_t*>(bad.at("predictor/updates").data())[0] = -1;
  CHECK_THROWS_AS(load(one, bad), Error);
}

TEST_CASE("router predictor: what one learned is no state of one that reads other rows") {
  std::set<std::string> names;
  const auto add = [&](const RouterPredictorSettings& s) {
    RouterPredictor predictor(kShape, s);
    for (const auto& [name, bytes] : saved(predictor)) {
      if (!name.starts_with("popularity/")) CHECK(names.insert(name).second);
    }
  };
  for (int32_t ahead = 1; ahead <= 4; ++ahead) add(settings(ahead));
  RouterPredictorSettings before_attention = settings();
  before_attention.input = PredictorInput::layer;
  add(before_attention);
  CHECK(names.contains("predictor/weight"));
}

TEST_CASE("router predictor: a layer without a source has its history") {
  const RoutedWorld world(kShape, kHidden, .9, 2);
  const Pool pool(1);
  RouterPredictor predictor = made(world, settings(2), Start::router);
  run_step(predictor, world, 1, {0}, pool);
  const auto counts = world.micro_batch(1, 0, kTokens)[1].counts;
  const Prediction prediction = predictor.predict({.layer = 1, .tokens = kTokens}, {}, pool);
  CHECK(prediction.rows.empty());
  for (size_t e = 0; e < counts.size(); ++e) {
    CHECK(prediction.tokens[e] == Approx(static_cast<double>(counts[e])));
  }
}

TEST_CASE("router predictor: some rows stand for all") {
  const RoutedWorld world(kShape, kHidden, .95, 2);
  const Pool pool(1);
  RouterPredictorSettings few = settings();
  few.predicted_rows = 24;
  const RouterPredictor all = made(world, settings(), Start::router),
                        some = made(world, few, Start::router);
  const auto layers = world.micro_batch(1, 0, kTokens);
  const RoutedBatch batch{.layer = 1, .tokens = kTokens};
  const Prediction whole = all.predict(batch, layers[0].rows, pool),
                   part = some.predict(batch, layers[0].rows, pool);
  CHECK(whole.rows.size() == kTokens);
  REQUIRE(part.rows.size() == 24);
  CHECK(part.rows[0] == 2);
  CHECK(part.rows[23] == 94);
  for (const Prediction* p : {&whole, &part}) {
    CHECK(std::accumulate(p->tokens.begin(), p->tokens.end(), 0.0) == Approx(kTokens * 2));
  }
  for (size_t i = 0; i < part.rows.size(); ++i) {  // the same choices of the same tokens
    for (size_t j = 0; j < 2; ++j) {
      CHECK(part.choices[i * 2 + j] == whole.choices[static_cast<size_t>(part.rows[i]) * 2 + j]);
    }
  }
  CHECK(spread_rows(0, 4).empty());
  CHECK(spread_rows(3, 8) == std::vector<int32_t>{0, 1, 2});
}

TEST_CASE("pre-attention predictor: the norm before the router is part of its weights") {
  const RoutedWorld world(kShape, kHidden, .9, 13);
  const Pool pool(1);
  RouterPredictorSettings s = settings();
  s.input = PredictorInput::layer;
  RouterPredictor predictor(kShape, s);
  std::vector<float> norm(kHidden);
  for (size_t h = 0; h < norm.size(); ++h) norm[h] = .5F + .05F * static_cast<float>(h);
  predictor.start(2, world.router(2), norm);
  // A residual stream whose norm is what enters the router: then nothing is left to learn.
  const auto layer = world.micro_batch(1, 0, kTokens)[2];
  std::vector<float> residual(layer.rows.size());
  std::vector<int32_t> expected;
  for (size_t t = 0; t < kTokens; ++t) {
    std::vector<float> normed(kHidden), logits(16);
    divide_by_rms(std::span(layer.rows).subspan(t * kHidden, kHidden), 1e-6, normed);
    for (size_t h = 0; h < kHidden; ++h) {
      residual[t * kHidden + h] = static_cast<float>(t + 1) * layer.rows[t * kHidden + h];
      normed[h] *= norm[h];
    }
    soft_logits<float>(world.router(2), normed, logits);
    std::vector<int32_t> chosen(2);
    choose_experts(logits, chosen);
    expected.insert(expected.end(), chosen.begin(), chosen.end());
  }
  const RoutedBatch batch{.layer = 2, .tokens = kTokens};
  CHECK(predictor.predict(batch, residual, pool).choices == expected);
  // It learns from the same rows: the first update changes weights whatever the scale of the stream.
  predictor.learn(batch, layer.routed(residual));
  predictor.end_step(pool);
  RouterPredictor other(kShape, s);
  other.start(2, world.router(2), norm);
  for (float& x : residual) x *= 1024;
  other.learn(batch, layer.routed(residual));
  other.end_step(pool);
  CHECK(predictor.loss() == Approx(other.loss()).epsilon(1e-4));
  RouterPredictor untrained(kShape, s);
  untrained.start(2, world.router(2), norm);
  const std::string weight = "predictor-pre-attention/weight";
  CHECK(saved(predictor).at(weight) != saved(untrained).at(weight));
  CHECK_THROWS_AS(predictor.start(2, world.router(2)), std::logic_error);
}

TEST_CASE("group counts: predictions until the router has run, projected to all micro-batches") {
  GroupCounts counts(3, 4);
  CHECK(counts.known() == 0);
  CHECK(counts.projected() == std::vector<double>{0, 0, 0});
  counts.set_predicted(1, std::vector<double>{1, 2, 3});
  counts.set_predicted(0, std::vector<double>{3, 2, 1.5});
  CHECK(counts.known() == 2);
  CHECK(counts.tokens() == std::vector<double>{3, 2, 1.5, 1, 2, 3});
  CHECK(counts.projected() == std::vector<double>{8, 8, 9});
  counts.set_real(0, std::vector<int64_t>{4, 0, 2});
  counts.set_predicted(0, std::vector<double>{9, 9, 9});  // too late
  CHECK(counts.tokens() == std::vector<double>{4, 0, 2, 1, 2, 3});
  CHECK_FALSE(counts.all_real());
  for (int32_t m = 1; m < 4; ++m) counts.set_real(m, std::vector<int64_t>{1, 1, 1});
  CHECK(counts.all_real());
  CHECK(counts.projected() == std::vector<double>{7, 3, 5});
  counts.clear();
  CHECK(counts.known() == 0);
  CHECK_THROWS_AS(counts.set_real(4, std::vector<int64_t>{1, 1, 1}), std::logic_error);
}

}  // namespace
}  // namespace hearth::test
