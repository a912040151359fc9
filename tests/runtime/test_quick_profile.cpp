// Quick tables of a run, on a machine whose clock only its tasks move.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "runtime/model_machine.h"
#include "runtime/profile_scaling.h"

namespace hearth::test {
namespace {

using Catch::Approx;

constexpr int64_t kRunTokens = 4096, kExpertTokens = 1638;  // two of five experts

/// The quick table of a run on a machine.
PlaceProfile quick_profile(ModelMachine& machine, double seconds, bool whole = false) {
  const Shapes shapes;
  BenchSubject subject = shapes.subject();
  const BenchPlace place = machine.place();
  return profile_place(place, subject,
                       {.seconds = seconds,
                        .max_bytes = kPlenty,
                        .most_tokens = kRunTokens,
                        .most_samples = 12,
                        .token_points = 6,
                        .expert_points = 8,
                        .whole = whole,
                        .quick = true,
                        .expert_tokens = kExpertTokens,
                        .shared_experts = false});
}

/// By how much the table's time of the run's own sizes is off: the sum over the kinds of tasks.
double predicted_of_true(const PlaceProfile& profile) {
  double predicted = 0, real = 0;
  for (const TaskKind kind : {TaskKind::embed, TaskKind::attention, TaskKind::mlp,
                              TaskKind::dispatch, TaskKind::experts, TaskKind::combine}) {
    for (const Phase phase : {Phase::forward, Phase::backward}) {
      const CostEntry* entry = find(profile, kind, phase);
      INFO(name_of(kind));
      if (kind == TaskKind::combine && phase == Phase::backward) {
        CHECK(entry == nullptr);  // nothing to do
        continue;
      }
      REQUIRE(entry != nullptr);
      const auto tokens =
          static_cast<double>(kind == TaskKind::experts ? kExpertTokens : kRunTokens);
      const double calls = kind == TaskKind::experts ? 5 : 1;
      predicted += calls * entry->at(tokens);
      real += calls * ModelMachine::seconds(kind, phase, tokens);
    }
  }
  return predicted / real;
}

TEST_CASE("quick profile: a quiet machine is measured at the run's own sizes, within the time") {
  ModelMachine machine([](int) { return 1.0; });
  const double begin = machine.now();
  const PlaceProfile profile = quick_profile(machine, 20);
  CHECK(machine.now() - begin <= 20 + machine.longest());
  CHECK(predicted_of_true(profile) == Approx(1).epsilon(.001));
  const CostEntry& experts = *find(profile, TaskKind::experts, Phase::backward);
  CHECK(std::find(experts.units.begin(), experts.units.end(), kExpertTokens) !=
        experts.units.end());
  CHECK(profile.spread == 0);
}

TEST_CASE("quick profile: on a loaded machine it keeps its time, and what it says is usable") {
  // Others take from most tasks, from some much.
  const auto burst = [](int n) {
    const double share = std::fmod(n * .6180339887, 1.0);  // evenly spread over 0 to 1
    return share < .4 ? 1 : 1 + 15 * (share - .4);
  };
  for (const double seconds : {20.0, 4.0, 1.5, .6}) {
    std::vector<double> offs;
    for (int phase = 0; phase < 21; ++phase) {  // which tasks are hit is an accident
      INFO(seconds << " s, phase " << phase);
      ModelMachine machine([&](int n) { return burst(n + 5 * phase); });
      const double begin = machine.now();
      const PlaceProfile profile = quick_profile(machine, seconds);
      CHECK(machine.now() - begin <= seconds + 2 * machine.longest());  // a run that warms, and one
      offs.push_back(predicted_of_true(profile));
    }
    std::sort(offs.begin(), offs.end());
    INFO(seconds << " s: off by " << offs.front() << " to " << offs.back());
    const double middle = offs[offs.size() / 2];
    CHECK(offs.front() > .3);
    CHECK(middle > .6);
    CHECK(middle < (seconds > 3 ? 1.4 : seconds > 1 ? 4 : 10));
    CHECK(offs.back() < (seconds > 3 ? 2.5 : 12));
  }
  // Five times slower all the time: the table says so, in the same time.
  ModelMachine slow([](int) { return 5.0; });
  const double begin = slow.now();
  const PlaceProfile profile = quick_profile(slow, 4);
  CHECK(slow.now() - begin <= 4 + 2 * slow.longest());
  CHECK(predicted_of_true(profile) > .8 * 5);
  CHECK(predicted_of_true(profile) < 1.5 * 5);
}

TEST_CASE("quick profile: without time it has middle sizes if it must, else nothing") {
  ModelMachine machine([](int) { return 1.0; });
  const PlaceProfile middle = quick_profile(machine, 1e-9, true);
  const CostEntry& head = *find(middle, TaskKind::head, Phase::forward);
  CHECK((head.units.front() > 8 && head.units.front() <= 64));
  CHECK(middle.samples == std::ssize(middle.entries));
  CHECK(quick_profile(machine, 0).entries.empty());
}

TEST_CASE("quick profile: what was not reached grows as the other phase does") {
  ProfileCurve forward{TaskKind::mlp, Phase::forward, 0, {}, {}, 0};
  for (const int64_t n : {16, 64, 1024}) {
    forward.points.push_back({{TaskKind::mlp, Phase::forward, 0, n}, n, 0, 1, {}, 0});
  }
  ProfileCurve backward = forward, attention = forward, unknown = forward;
  backward.phase = unknown.phase = Phase::backward;
  attention.kind = unknown.kind = TaskKind::attention;
  const std::vector<ProfileCurve> curves{forward, backward, attention, unknown};
  std::vector<CurveTimes> times(4);
  times[0] = {{16, 64, 1024}, {}, {1, 1.5, 6}};
  times[1] = {{16, 64}, {}, {2, 4}};
  times[2] = {{16, 64}, {}, {1, 1.6}};
  add_unreached(curves, times);
  CHECK(times[0].units.size() == 3);
  REQUIRE(times[1].units == std::vector<int64_t>{16, 64, 1024});
  CHECK(times[1].seconds[2] == Approx(4 * 6 / 1.5));
  REQUIRE(times[2].units.size() == 3);
  CHECK(times[2].seconds[2] == Approx(1.6 + .6 / 48 * 960));  // as between 16 and 64
  REQUIRE(times[3].units.size() == 3);
  CHECK(times[3].seconds[1] == Approx(2 * 1.6));
  CHECK(times[3].seconds[2] == Approx(2 * times[2].seconds[2]));
}

}  // namespace
}  // namespace hearth::test
