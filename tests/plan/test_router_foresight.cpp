// Models of routers between the splits of a step: which samples foretell which tokens.
#include <catch2/catch_test_macros.hpp>
#include <numeric>

#include "plan/decisions/makespan_rule.h"
#include "plan/decisions/router_foresight.h"
#include "plan/decisions/split_decider.h"
#include "plan/split_cases.h"

namespace hearth::test {
namespace {

constexpr RoutedShape kRouted{.layers = 3, .experts = 4, .top_k = 1};
const std::vector<int32_t> kRoutedLayers = {0, 2, 3};  // layer 1 is dense

/// Rows of H = E that are one expert's unit vector, times ten. The routers are unit matrices, so a
/// row chooses its expert.
std::vector<float> unit_rows(const std::vector<int32_t>& experts) {
  std::vector<float> rows(experts.size() * 4);
  for (size_t t = 0; t < experts.size(); ++t) {
    rows[4 * t + static_cast<size_t>(experts[t])] = 10;
  }
  return rows;
}

struct ForesightCase {
  Pool pool{1};
  RouterPredictor predictor;
  RouterForesight routers;

  explicit ForesightCase(int32_t ahead = 1, int32_t micro_batches = 2)
      : ForesightCase(settings(ahead), micro_batches) {}
  explicit ForesightCase(const RouterPredictorSettings& settings, int32_t micro_batches)
      : predictor(kRouted, settings),
        routers(kRoutedLayers, predictor, kRouted, micro_batches, pool) {
    std::vector<float> unit(16);
    for (size_t e = 0; e < 4; ++e) unit[5 * e] = 1;
    const bool is_normed = settings.input == PredictorInput::layer;
    const std::vector<float> norm(is_normed ? 4 : 0, 1);
    for (int32_t layer = is_normed ? 0 : settings.ahead; layer < 3; ++layer) {
      predictor.start(layer, unit, norm);
    }
    routers.begin_step(1);
  }
  static RouterPredictorSettings settings(int32_t ahead) {
    RouterPredictorSettings of;
    of.hidden = 4;
    of.ahead = ahead;
    return of;
  }
  static RouterPredictorSettings pre_attention() {
    RouterPredictorSettings of = settings(1);
    of.input = PredictorInput::layer;
    return of;
  }
  /// Micro-batches whose tokens enter the layer with what chooses these experts. They have twice as many
  /// tokens as the samples.
  static std::vector<LayerSample> entering(std::span<const std::vector<float>> rows) {
    std::vector<LayerSample> samples;
    for (const std::vector<float>& of : rows) samples.push_back({std::ssize(of) / 2, of});
    return samples;
  }
  /// A micro-batch whose sampled tokens read what chooses `read`, and chose `chosen`. It has twice
  /// as many tokens as the sample.
  void sample(int32_t layer, const std::vector<int32_t>& read, const std::vector<int32_t>& chosen) {
    const std::vector<float> normed = unit_rows(read), logits = unit_rows(chosen);
    std::vector<float> probs(logits.size());
    for (size_t i = 0; i < probs.size(); ++i) probs[i] = logits[i] / 10;
    std::vector<double> counts(4);
    for (const int32_t e : chosen) counts[static_cast<size_t>(e)] += 2;
    RouterSample of;
    of.layer = layer;
    of.tokens = 2 * std::ssize(read);
    of.counts = counts;
    if (predictor.settings().input == PredictorInput::router) of.normed = normed;
    of.probs = probs;
    routers.sampled(of);
  }
};

TEST_CASE("router foresight: a sample foretells the same micro-batch of a later layer") {
  ForesightCase c;
  CHECK(c.routers.target(0) == 2);
  CHECK(c.routers.target(2) == 3);
  CHECK(c.routers.target(3) == -1);
  CHECK(c.routers.next(2, 0, 1).empty());
  c.sample(0, {1, 1, 3}, {0, 0, 0});
  CHECK(c.routers.next(2, 0, 1) == std::vector<double>{0, 4, 0, 2});  // of all tokens
  CHECK(c.routers.next(2, 1, 1).empty());
  CHECK(c.routers.next(2, 0, 2).empty());
  CHECK(c.routers.next(3, 0, 1).empty());
  c.sample(0, {2}, {0});
  CHECK(c.routers.next(2, 0, 2) == std::vector<double>{0, 4, 0, 2, 0, 0, 2, 0});
  c.routers.begin_step(2);
  CHECK(c.routers.next(2, 0, 1).empty());
  ForesightCase two(2);
  CHECK(two.routers.target(0) == 3);
  CHECK(two.routers.target(2) == -1);
}

TEST_CASE("router foresight: the score is of the tokens that were foretold") {
  ForesightCase c;
  CHECK_FALSE(c.routers.score().token_hit());
  c.sample(0, {1, 1, 3, 2}, {0, 0, 0, 0});
  CHECK_FALSE(c.routers.score().token_hit());  // nothing foretold layer 0
  c.sample(2, {0, 0, 0, 0}, {1, 2, 3, 2});
  CHECK(c.routers.score().token_hit() == 0.75);
  c.routers.begin_step(2);
  CHECK_FALSE(c.routers.score().token_hit());
}

TEST_CASE("router foresight: what the router said is learned") {
  ForesightCase c(1, 1);
  for (int64_t step = 1; step <= 800; ++step) {  // expert 1 is foretold, expert 2 is chosen
    c.routers.begin_step(step);
    c.sample(0, {1, 1, 1, 1}, {0, 0, 0, 0});
    if (step == 1) CHECK(c.routers.next(2, 0, 1) == std::vector<double>{0, 8, 0, 0});
    c.sample(2, {0, 0, 0, 0}, {2, 2, 2, 2});
    c.sample(3, {0, 0, 0, 0}, {0, 0, 0, 0});
    c.routers.end_step();
  }
  c.routers.begin_step(801);
  c.sample(0, {1, 1, 1, 1}, {0, 0, 0, 0});
  CHECK(c.routers.next(2, 0, 1) == std::vector<double>{0, 0, 8, 0});
}

TEST_CASE("router foresight: what enters a layer foretells the layer itself, the first one, too") {
  ForesightCase c(ForesightCase::pre_attention(), 3);
  CHECK(c.routers.target(0) == -1);
  const std::vector<std::vector<float>> rows = {unit_rows({1, 1, 3}), unit_rows({2})};
  c.routers.entered(0, c.entering(rows));
  CHECK(c.routers.next(0, 0, 2) == std::vector<double>{0, 4, 0, 2, 0, 0, 2, 0});
  CHECK(c.routers.next(0, 2, 1).empty());
  CHECK(c.routers.next(2, 0, 1).empty());
  c.sample(0, {0, 0, 0}, {1, 0, 3});  // what the router reads counts for nothing
  CHECK(c.routers.next(2, 0, 1).empty());
  CHECK(c.routers.score().token_hit() == 2.0 / 3);
  c.routers.begin_step(2);
  CHECK(c.routers.next(0, 0, 1).empty());
  c.routers.entered(0, c.entering(std::span(rows).last(1)));
  CHECK(c.routers.next(0, 0, 1) == std::vector<double>{0, 0, 2, 0});
}

TEST_CASE("router foresight: what entered a layer learns what its router said") {
  ForesightCase c(ForesightCase::pre_attention(), 1);
  const std::vector<std::vector<float>> rows = {unit_rows({1, 1, 1, 1})};
  for (int64_t step = 1; step <= 800; ++step) {
    c.routers.begin_step(step);
    c.routers.entered(2, c.entering(rows));
    if (step == 1) CHECK(c.routers.next(2, 0, 1) == std::vector<double>{0, 8, 0, 0});
    c.sample(2, {0, 0, 0, 0}, {2, 2, 2, 2});
    c.routers.end_step();
  }
  c.routers.begin_step(801);
  c.routers.entered(2, c.entering(rows));
  CHECK(c.routers.next(2, 0, 1) == std::vector<double>{0, 0, 8, 0});
}

/// A device that computes an expert at once, beside a slow host; its link loads ten experts a second.
struct DecidedCase {
  CostEntry host = line(0, 0.01), device = line(0, 1e-9);
  DecidedDevice at;

  DecidedCase() {
    at.place = 3;
    at.layers = kRoutedLayers;
    at.passes = {{nullptr, nullptr, &host, &device, false}};
    at.link.in.bytes_per_s = 10;
    at.weight_bytes = 1;
  }
};

TEST_CASE("split decider: what enters a layer foretells its experts before its router runs") {
  ForesightCase c(ForesightCase::pre_attention(), 2);
  const DecidedCase decided;
  for (const bool is_asked : {true, false}) {
    Foresight foresight;
    foresight.predictor = ForetoldBy::pre_attention;
    foresight.phases.inter_layer = is_asked;
    SplitDecider rule({decided.at}, 4, &split_by_makespan, foresight);
    rule.foretell_with(&c.routers);
    rule.begin_step(1);
    CHECK(rule.foretold_here(0).empty());
    const std::vector<std::vector<float>> first = {unit_rows(std::vector<int32_t>(100, 2))};
    const std::vector<std::vector<float>> second = {unit_rows(std::vector<int32_t>(100, 3))};
    std::vector<Place> places(4);
    const auto divide = [&](int32_t layer, double expert_1) {
      rule.divide(layer, std::vector<double>{0, expert_1, 0, 0}, places);
    };
    const auto here = [&](int32_t layer, int32_t expert) {
      const std::vector<ForetoldExperts> of = rule.foretold_here(layer);
      if (!is_asked) return of.empty();
      return of.size() == 1 && of[0].layer == layer && of[0].experts == std::vector{expert};
    };
    rule.entered(0, c.entering(first));
    CHECK(here(0, 2));
    c.sample(0, std::vector<int32_t>(100, 0), std::vector<int32_t>(100, 1));
    divide(0, 200);
    CHECK(rule.foretold_behind(0).empty());
    CHECK(rule.score().token_hit() == 0.0);
    CHECK(rule.score().byte_hit() == 0.0);
    rule.entered(0, c.entering(second));  // the next micro-batch
    CHECK(here(0, 3));
    rule.entered(2, c.entering(second));
    CHECK(here(2, 3));
  }
}

TEST_CASE("split decider: an oracle foretells what a record says, group after group") {
  const DecidedCase decided;
  const auto recorded = std::make_shared<RecordedSplits>("j.jsonl");
  const auto add = [&](int64_t step, int32_t layer, std::vector<int32_t> tokens, size_t expert) {
    RecordedSplit of{1, std::move(tokens), std::vector<uint8_t>(4), {}};
    of.reasons.resize(4);
    of.on_device[expert] = 1;
    recorded->add(step, layer, of);
  };
  add(1, 0, {5, 0, 3, 0}, 2);
  add(1, 0, {0, 4, 4, 0}, 1);
  add(1, 2, {8, 0, 0, 0}, 0);
  Foresight foresight;
  foresight.predictor = ForetoldBy::oracle;
  SplitDecider rule({decided.at}, 4, &split_by_makespan, foresight);
  rule.repeat(recorded);
  rule.begin_step(1);
  const auto foretold = [&] {
    std::vector<std::pair<int32_t, std::vector<int32_t>>> of;
    for (const ForetoldExperts& each : rule.foretold()) of.emplace_back(each.layer, each.experts);
    return of;
  };
  using All = std::vector<std::pair<int32_t, std::vector<int32_t>>>;
  CHECK(foretold() == All{{0, {2}}, {2, {0}}});
  std::vector<Place> places(4);
  rule.divide(0, std::vector<double>{5, 0, 3, 0}, places);
  CHECK(places == std::vector<Place>{0, 0, 3, 0});
  CHECK(foretold() == All{{0, {1}}, {2, {0}}});
  rule.divide(0, std::vector<double>{0, 4, 4, 0}, places);
  CHECK(foretold() == All{{2, {0}}});
  rule.divide(2, std::vector<double>{8, 0, 0, 0}, places);
  CHECK(rule.score().least_quarter() == 1.0);
  CHECK(rule.score().byte_hit() == 1.0);
  CHECK(rule.score().token_hit() ==
        17.0 / 24);  // of counts alone: the most popular expert each time
}

TEST_CASE("split decider: routers foretell the next layer, and say more than history") {
  ForesightCase c(1, 1);
  const DecidedCase decided;
  Foresight foresight;
  foresight.predictor = ForetoldBy::router;
  SplitDecider rule({decided.at}, 4, &split_by_makespan, foresight);
  rule.foretell_with(&c.routers);
  rule.begin_step(1);
  std::vector<Place> places(4);
  const auto divide = [&](int32_t layer, const std::vector<int32_t>& read,
                          const std::vector<int32_t>& chosen) {
    c.sample(layer, read, chosen);
    std::vector<double> tokens(4);
    for (const int32_t e : chosen) tokens[static_cast<size_t>(e)] += 2;
    rule.divide(layer, tokens, places);
  };
  CHECK(rule.foretold_behind(0).empty());
  divide(0, std::vector<int32_t>(100, 2), std::vector<int32_t>(100, 1));
  const std::vector<ForetoldExperts> behind = rule.foretold_behind(0);
  REQUIRE(behind.size() == 1);
  CHECK(behind[0].layer == 2);
  CHECK(behind[0].experts == std::vector<int32_t>{2});
  divide(2, std::vector<int32_t>(100, 3), std::vector<int32_t>(100, 2));
  CHECK(rule.score().token_hit() == 1);
  CHECK(rule.score().byte_hit() == 1);
  CHECK(rule.foretold_behind(2)[0].experts == std::vector<int32_t>{3});
  // The next step's first layer has history alone.
  divide(3, std::vector<int32_t>(100, 0), std::vector<int32_t>(100, 0));
  CHECK(rule.score().token_hit() == 0.5);
  rule.end_step();
  rule.begin_step(2);
  REQUIRE(rule.foretold().size() == 3);
  CHECK(rule.foretold()[0].experts == std::vector<int32_t>{1});
}

}  // namespace
}  // namespace hearth::test
