// Which expert of a layer is divided along its width, and where: only where that saves time, near the best
// of all divisions.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "plan/decisions/divided_expert.h"
#include "plan/decisions/makespan_rule.h"
#include "plan/decisions/split_decider.h"
#include "plan/split_cases.h"

namespace hearth::test {
namespace {

using Catch::Approx;

std::vector<uint8_t> flags_of(const ExpertSplit& split) {
  std::vector<uint8_t> flags(split.reasons.size());
  for (const int32_t e : split.device) flags[static_cast<size_t>(e)] = 1;
  return flags;
}

/// The best of all divisions of one expert beside a split, or beside one that differs by this expert.
double best_of_divisions(const SplitModel& model, const std::vector<uint8_t>& on_device) {
  const int64_t width = model.problem().width;
  double best = std::numeric_limits<double>::infinity();
  std::vector<uint8_t> split = on_device;
  for (const int32_t expert : model.ranking()) {
    if (!model.is_away(expert)) continue;
    split[static_cast<size_t>(expert)] = 0;
    for (int64_t w = divided_columns(width); w < width; w += divided_columns(width)) {
      const double share = static_cast<double>(w) / static_cast<double>(width);
      best = std::min(best, model.seconds(split, {expert, share}));
    }
    split = on_device;
  }
  return best;
}

TEST_CASE("divided expert: random problems against all divisions") {
  std::mt19937_64 random(3);
  int divided = 0, whole = 0;
  for (int round = 0; round < 3000; ++round) {
    RandomSplitCase c(random, 1 + static_cast<int64_t>(random() % 7));
    c.problem.width = random() % 2 == 0 ? 768 : 1408;
    const SplitProblem& p = c.get();
    const SplitModel model(p);
    const ExpertSplit split = split_by_makespan(p);
    SplitProblem undivided = p;
    undivided.width = 0;
    const ExpertSplit without = split_by_makespan(undivided);
    REQUIRE_FALSE(without.divided.any());
    const double best = best_of_divisions(model, flags_of(without));
    if (!split.divided.any()) {
      ++whole;
      REQUIRE(split.predicted_s == without.predicted_s);
      REQUIRE(best >= (0.99 - 1e-9) * without.predicted_s);
      continue;
    }
    ++divided;
    const auto [expert, width] = split.divided;
    const auto e = static_cast<size_t>(expert);
    REQUIRE(split.predicted_s <= 0.99 * without.predicted_s);
    REQUIRE(width > 0);
    REQUIRE(width < p.width);
    REQUIRE(width % divided_columns(p.width) == 0);
    REQUIRE(model.is_away(expert));
    REQUIRE(model.tokens(expert) > 0);
    REQUIRE(std::ranges::count(split.host, expert) == 1);
    REQUIRE(split.reasons[e] == SplitReason::split);
    REQUIRE(std::ranges::count(split.reasons, SplitReason::split) == 1);
    REQUIRE(std::ssize(split.device) <= p.device_experts);
    const double share = static_cast<double>(width) / static_cast<double>(p.width);
    REQUIRE(split.predicted_s == model.seconds(flags_of(split), {expert, share}));
    REQUIRE(split.predicted_s >= best);
    REQUIRE(split.predicted_s <= (1 + 1e-9) * best);
  }
  INFO("divided " << divided << ", whole " << whole);
  CHECK(divided > 300);
  CHECK(whole > 300);
}

/// Two experts of equal tokens, each a second of the host, or two of the link.
SplitCase& two_experts(SplitCase& c) {
  c.tokens = {100, 100};
  c.host[0] = line(0, .01);
  c.device[0] = line(0, 1e-9);
  c.set_bytes(200);
  c.problem.in = {100, 0};
  c.problem.width = 1024;
  return c;
}

TEST_CASE("divided expert: both ends are early") {
  SplitCase c(2);
  const ExpertSplit split = split_by_makespan(two_experts(c).get());
  // Both on the host take two seconds, and so does one on each side. With 1 + (1 - w) = 2 w, two thirds
  // of one are the device's, and all ends after 4/3.
  REQUIRE(split.divided.any());
  CHECK(split.device.empty());
  CHECK(split.divided.width == Approx(1024 * 2 / 3.0).margin(64));
  CHECK(split.predicted_s == Approx(4 / 3.0).margin(.06));
}

TEST_CASE("divided expert: what the device has, or gets anyway, is not divided") {
  for (const Where where : {Where::here, Where::coming}) {
    SplitCase c(2);
    two_experts(c);
    for (size_t e = 0; e < 2; ++e) {
      c.state(e).where = where;
      c.state(e).bytes_left = 0;
    }
    CHECK_FALSE(split_by_makespan(c.get()).divided.any());
  }
}

TEST_CASE("divided expert: columns are not there before they are packed") {
  SplitCase fast(2), slow(2);
  two_experts(fast);
  two_experts(slow).problem.memory_bytes_per_s = 100;  // half an expert is packed in two seconds
  const std::vector<uint8_t> none(2);
  const auto seconds = [&](SplitCase& c) { return SplitModel(c.get()).seconds(none, {1, .5}); };
  CHECK(seconds(slow) >= seconds(fast) + 1);
}

/// A device whose rule may divide an expert of a layer.
DecidedDevice dividing_device(const CostEntry& host, const CostEntry& device, bool is_trained) {
  DecidedDevice at;
  at.place = 3;
  at.layers = {0};
  at.passes.push_back({nullptr, nullptr, &host, &device, false});
  at.link.in.bytes_per_s = 100;
  at.weight_bytes = 200;
  at.width = 1024;
  at.groups = 2;
  at.is_trained = is_trained;
  return at;
}

TEST_CASE("divided expert: a rule says which, and a trained one stays with the host in its step") {
  const CostEntry host = line(0, .01), device = line(0, 1e-9);
  SplitDecider rule({dividing_device(host, device, true)}, 2, &split_by_makespan);
  const std::vector<double> tokens = {100, 100}, few = {1, 1};
  std::vector<Place> places(2);
  rule.begin_step(1);
  rule.divide(0, tokens, places);
  const DividedExpert first = rule.divided(0);
  REQUIRE(first.any());
  CHECK(places == std::vector<Place>(2, kHostPlace));
  rule.divide(0, few, places);
  CHECK_FALSE(rule.divided(0).any());
  CHECK(places == std::vector<Place>(2, kHostPlace));
  const std::vector<SplitDecision> made = rule.decisions();
  REQUIRE(made.size() == 2);
  CHECK(made[0].split.reasons[static_cast<size_t>(first.expert)] == SplitReason::split);
  CHECK(std::ranges::count(made[1].split.reasons, SplitReason::split) == 0);
  rule.end_step();

  SplitDecider again({dividing_device(host, device, true)}, 2, &split_by_makespan);
  again.restore(rule.past());
  again.begin_step(2);
  rule.begin_step(2);
  for (SplitDecider* const of : {&rule, &again}) of->divide(0, tokens, places);
  CHECK(again.divided(0) == rule.divided(0));

  DecidedDevice off = dividing_device(host, device, true);
  off.width = 0;
  SplitDecider without({off}, 2, &split_by_makespan);
  without.divide(0, tokens, places);
  CHECK_FALSE(without.divided(0).any());
}

}  // namespace
}  // namespace hearth::test
