// Tables of `hearth profile` in a short time and on a noisy machine, whose clock only its tasks
// move.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "runtime/model_machine.h"
#include "runtime/profile_curves.h"

namespace hearth::test {
namespace {

constexpr int64_t kMostTokens = 4096;

PlaceProfile profile(ModelMachine& machine, double seconds, int64_t most_tokens = kMostTokens) {
  const Shapes shapes;
  BenchSubject subject = shapes.subject();
  const BenchPlace place = machine.place();
  return profile_place(place, subject,
                       {.seconds = seconds, .max_bytes = kPlenty, .most_tokens = most_tokens});
}

/// By how much a table's time of the largest size is off, for the worst of the curves over tokens.
double worst_of(const PlaceProfile& profile) {
  double worst = 1;
  for (const CostEntry& e : profile.entries) {
    if (e.kind == TaskKind::norm || e.kind == TaskKind::update) continue;
    // The bench has a part of the vocabulary; the time is that of the whole.
    if (e.kind == TaskKind::head) continue;
    const double off = e.at(kMostTokens) / ModelMachine::seconds(e.kind, e.phase, kMostTokens);
    worst = std::max({worst, off, 1 / off});
  }
  return worst;
}

size_t fewest_points(const PlaceProfile& profile) {
  size_t fewest = 100;
  for (const CostEntry& e : profile.entries) {
    if (e.kind == TaskKind::norm || e.kind == TaskKind::update) continue;
    fewest = std::min(fewest, e.units.size());
  }
  return fewest;
}

TEST_CASE("short profile: every curve has sizes far apart, within the time") {
  for (const double seconds : {1.0, 2.0, 4.0}) {
    INFO(seconds);
    ModelMachine machine([](int) { return 1.0; });
    const double begin = machine.now();
    const PlaceProfile table = profile(machine, seconds);
    CHECK(machine.now() - begin <= seconds);
    CHECK(fewest_points(table) >= 4);
    CHECK(worst_of(table) < 3);
    for (const CostEntry& e : table.entries) {
      if (e.kind == TaskKind::experts) CHECK(e.units.size() >= 20);
    }
  }
}

TEST_CASE("short profile: the time may change when the memory is there") {
  ModelMachine machine([](int) { return 1.0; });
  const Shapes shapes;
  BenchSubject subject = shapes.subject();
  const BenchPlace place = machine.place();
  const double begin = machine.now();
  const PlaceProfile table = profile_place(place, subject,
                                           {.seconds = 1e-9,
                                            .max_bytes = kPlenty,
                                            .most_tokens = kMostTokens,
                                            .seconds_after_setup = [](double) { return 2.0; }});
  CHECK(fewest_points(table) >= 4);
  CHECK(machine.now() - begin > 1);
  CHECK(machine.now() - begin <= 2);
}

// Some of these runs take longer than the whole time.
TEST_CASE("short profile: no slow run ends a curve") {
  for (int slow = 0; slow < 120; ++slow) {
    INFO("the run " << slow);
    ModelMachine machine([&](int n) { return n == slow ? 50.0 : 1.0; });
    const PlaceProfile table = profile(machine, 3);
    CHECK(fewest_points(table) >= 3);
    CHECK(worst_of(table) < 5);
  }
}

TEST_CASE("profile: what prepares a sweep does not count in proportion to its size") {
  // Preparing takes 10 ms, the sweep over 160 parameters 10 us.
  ProfileCurve curve{TaskKind::update, Phase::forward, -1, {}, {}, 0};
  const auto add = [&](int64_t parameters) {
    curve.points.push_back({{TaskKind::update, Phase::forward, -1, 0}, parameters, 0, 1, {}, 0});
  };
  add(160);
  add(1'600'000);
  curve.points.front().samples = {1e-5};
  curve.points.front().wall_s = 1e-2;
  CHECK(curve.expected_s(1) > .1);
  CHECK(curve.expected_s(1) < .3);
}

TEST_CASE("profile: the time that is left goes to sizes whose runs differ") {
  // Others take up to half as much again, evenly spread.
  const auto noise = [](int n) { return 1 + .5 * std::fmod(n * .6180339887, 1.0); };
  const double seconds = 60;
  PlaceProfile settled;
  {
    ModelMachine quiet([](int) { return 1.0; });
    const double begin = quiet.now();
    settled = profile(quiet, seconds, 64);
    CHECK(quiet.now() - begin < seconds / 2);
  }
  CHECK(settled.spread == 0);
  ModelMachine noisy(noise);
  const double begin = noisy.now();
  const PlaceProfile more = profile(noisy, seconds, 64);
  REQUIRE(more.spread);
  CHECK(*more.spread > kNoisy);
  CHECK(noisy.now() - begin > .95 * seconds);
  CHECK(noisy.now() - begin <= seconds + noisy.longest());  // a last run may be a slow one
  CHECK(more.samples > settled.samples);
}

}  // namespace
}  // namespace hearth::test
