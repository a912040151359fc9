// Equation 1 of APTMoE: as printed and corrected, by hand and by its definition.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <set>

#include "plan/decisions/equation_1.h"
#include "plan/decisions/split_model.h"
#include "plan/split_cases.h"

namespace hearth::test {
namespace {

using Catch::Approx;

/// Eight experts of 10 s a load; the host takes a second per token.
void fill(SplitCase& c) {
  c.tokens = {4, 30, 2, 20, 8, 6, 1, 12};  // ranks: 1 3 7 4 5 0 2 6
  c.set_bytes(10);
  c.problem.in = {1, 0};
  c.problem.out = {1, 0};
}

TEST_CASE("equation 1: by hand") {
  SplitCase c(8);
  fill(c);
  // Host left: 83, 53 (1 loaded), 33, 21 (3 loaded: 30 s). At 2 loads 33 > 20.
  ExpertSplit split = split_by_equation_1(c.get(), EquationForm::printed);
  CHECK(split.device == std::vector<int32_t>{1, 3, 7});
  CHECK(split.host == std::vector<int32_t>{4, 5, 0, 2, 6});
  for (const int32_t e : split.host) {
    CHECK(split.reasons[static_cast<size_t>(e)] == SplitReason::host_balance);
  }
  CHECK(split_by_equation_1(c.get(), EquationForm::corrected).device == split.device);
  CHECK(ratio_of_equation_1(c.get(), EquationForm::printed, split) == Approx(21.0 / 30));
  // Attention and router of the layer: 13 s more.
  c.problem.dense_bytes = 13;
  split = split_by_equation_1(c.get(), EquationForm::printed);
  CHECK(split.device == std::vector<int32_t>{1, 3});
  CHECK(ratio_of_equation_1(c.get(), EquationForm::printed, split) == 1);
  // Corrected, they count only while they are on their way.
  CHECK(split_by_equation_1(c.get(), EquationForm::corrected).device.size() == 3);
  c.passes[0].in_free_s = 13;
  CHECK(split_by_equation_1(c.get(), EquationForm::corrected).device.size() == 2);
}

TEST_CASE("equation 1: updates keep the host busy, and the printed form does not know it") {
  SplitCase c(8);
  fill(c);
  c.passes[0].host_free_s = 12;  // 21 s and these are above 30 s; then 13 s and these below 40 s
  CHECK(split_by_equation_1(c.get(), EquationForm::corrected).device ==
        std::vector<int32_t>{1, 3, 7, 4});
  CHECK(split_by_equation_1(c.get(), EquationForm::printed).device ==
        std::vector<int32_t>{1, 3, 7});
  c.passes[0].host_free_s = 1000;  // where the host has nothing, it does not matter
  CHECK(split_by_equation_1(c.get(), EquationForm::corrected).host.empty());
}

TEST_CASE(
    "equation 1: the host gets nothing if that makes a pass longer than it makes others shorter") {
  SplitCase c(8, 2);
  fill(c);
  c.host[1] = line(0, 1);
  c.problem.out = {1, 0};
  // Host 2 s a token. 5 loads: 14 s and the updates against 100 s.
  c.passes[0].host_free_s = 85;
  ExpertSplit split = split_by_equation_1(c.get(), EquationForm::corrected);
  CHECK(split.device.size() == 5);
  CHECK(split.predicted_s == Approx(92 + 50).margin(1));
  // 7 loads: 2 s and the updates against 140 s. But the forward alone ends with the host, after 126 s,
  // and the backward after 70 s. With all loads it is 80 s each.
  c.passes[0].host_free_s = 125;
  split = split_by_equation_1(c.get(), EquationForm::corrected);
  CHECK(split.host.empty());
  CHECK(split.predicted_s == Approx(160).margin(1));
  c.problem.device_experts = 7;  // no room for all
  split = split_by_equation_1(c.get(), EquationForm::corrected);
  CHECK(split.host == std::vector<int32_t>{6});
  CHECK(split.predicted_s == Approx(126 + 70).margin(1));
}

TEST_CASE("equation 1: what is there costs nothing and stays, if corrected") {
  SplitCase c(8);
  fill(c);
  c.state(1).where = Where::here, c.state(1).bytes_left = 0;
  c.state(6).where = Where::here, c.state(6).bytes_left = 0;  // the least popular
  c.state(2).where = Where::coming, c.state(2).bytes_left = 5, c.state(2).here_in_s = 5;
  c.passes[0].in_free_s = 5;
  // Left on the host: 83 - 30 - 1 - 2 = 50 against 5; then 30 against 15; 18 against 25.
  const ExpertSplit split = split_by_equation_1(c.get(), EquationForm::corrected);
  CHECK(split.device == std::vector<int32_t>{1, 6, 2, 3, 7});
  CHECK(split.reasons[6] == SplitReason::resident);
  CHECK(split.reasons[2] == SplitReason::prefetched);
  CHECK(split.reasons[3] == SplitReason::loaded);
  // As printed, all loads count: the same as if nothing were there.
  const ExpertSplit printed = split_by_equation_1(c.get(), EquationForm::printed);
  CHECK(std::set<int32_t>(printed.device.begin(), printed.device.end()) ==
        std::set<int32_t>{1, 3, 7});
}

TEST_CASE("equation 1: queued loads can still be taken back, so they cost what they are") {
  SplitCase c(8);
  fill(c);
  for (const size_t e : {size_t{1}, size_t{6}}) c.state(e).where = Where::queued;
  const ExpertSplit split = split_by_equation_1(c.get(), EquationForm::corrected);
  CHECK(split.device == std::vector<int32_t>{1, 3, 7});
  CHECK(split.reasons[1] == SplitReason::prefetched);
  CHECK(split.reasons[6] == SplitReason::host_balance);
}

TEST_CASE("equation 1: the host reads weights again for each micro-batch, if corrected") {
  SplitCase c(4);
  c.tokens = {9, 8, 2, 2, 9, 8, 2, 2};  // two micro-batches
  c.problem.micro_batches = 2;
  c.problem.host_calls = ExpertCalls::per_micro_batch;
  c.host[0] = line(10, 1);
  c.set_bytes(40);
  c.problem.in = {1, 0};
  // All tokens at once: 28, 26, 14, 14: after one load 54 > 40, after two 28 <= 80.
  CHECK(split_by_equation_1(c.get(), EquationForm::printed).device.size() == 2);
  // Micro-batch by micro-batch: 38, 36, 24, 24: after one load 84 > 40, after two 48 <= 80.
  CHECK(split_by_equation_1(c.get(), EquationForm::corrected).device.size() == 2);
  c.set_bytes(60);
  CHECK(split_by_equation_1(c.get(), EquationForm::printed).device.size() == 1);
  CHECK(split_by_equation_1(c.get(), EquationForm::corrected).device.size() == 2);
  // The host computes the group at once: then its calls are what is printed.
  c.problem.host_calls = ExpertCalls::per_group;
  CHECK(split_by_equation_1(c.get(), EquationForm::corrected).device.size() == 1);
}

TEST_CASE("equation 1: tokens of micro-batches to come are projected") {
  SplitCase c(8);
  fill(c);
  c.problem.micro_batches = 4;  // one of four is known
  // 332 on the host; loads of 10: 212 left after one, 132, 84, 52 (4 loads: 40), 28 (5: 50).
  const ExpertSplit split = split_by_equation_1(c.get(), EquationForm::printed);
  CHECK(split.device == std::vector<int32_t>{1, 3, 7, 4, 5});
}

TEST_CASE("equation 1: a backward counts the gradients that go home, if that is slower") {
  SplitCase c(8);
  fill(c);
  c.passes[0].gradient_bytes = 10;
  CHECK(split_by_equation_1(c.get(), EquationForm::corrected).device.size() == 3);  // the other way
  c.problem.out = {.5, 0};  // 20 s each: 53 against 20, 33 against 40
  CHECK(split_by_equation_1(c.get(), EquationForm::corrected).device.size() == 2);
  CHECK(split_by_equation_1(c.get(), EquationForm::printed).device.size() == 3);
  // Forward and backward of one split: times of both are added.
  SplitCase both(8, 2);
  fill(both);
  both.problem.out = {.5, 0};
  both.host[1] = line(0, 2);
  both.passes[1].gradient_bytes = 10;
  // Host 3 s a token: 249, 159, 99, 63, 39; link 0, 30, 60, 90.
  const ExpertSplit split = split_by_equation_1(both.get(), EquationForm::corrected);
  CHECK(split.device.size() == 3);
  CHECK(ratio_of_equation_1(both.get(), EquationForm::corrected, split) == Approx(63.0 / 90));
}

TEST_CASE("equation 1: no room, no tokens, no time") {
  SplitCase c(8);
  fill(c);
  c.problem.device_experts = 1;
  const ExpertSplit split = split_by_equation_1(c.get(), EquationForm::corrected);
  CHECK(split.device == std::vector<int32_t>{1});
  // The equation would have loaded two more; the others it leaves on the host.
  CHECK(split.reasons[3] == SplitReason::no_room);
  CHECK(split.reasons[7] == SplitReason::no_room);
  CHECK(split.reasons[4] == SplitReason::host_balance);
  c.tokens.assign(8, 0);
  const ExpertSplit none = split_by_equation_1(c.get(), EquationForm::corrected);
  CHECK(none.device.empty());
  CHECK(none.host.empty());
  CHECK(ratio_of_equation_1(c.get(), EquationForm::corrected, none) == 0);
  // Loads that take no time: everything with tokens goes to the device.
  fill(c);
  c.tokens[6] = 0;
  c.problem.device_experts = 8;
  c.problem.in = {0, 0};
  CHECK(split_by_equation_1(c.get(), EquationForm::corrected).device.size() == 7);
  CHECK(ratio_of_equation_1(c.get(), EquationForm::corrected, none) ==
        std::numeric_limits<double>::infinity());
}

/// Where the equation stops by itself: seconds of the layer. `loaded`: all that it could load, the most
/// popular first.
double seconds_at_stop(const SplitProblem& p, const ExpertSplit& all,
                       std::span<const int32_t> loaded) {
  ExpertSplit split = all;
  std::vector<uint8_t> on_device(static_cast<size_t>(p.experts), 1);
  for (const int32_t e : loaded) {
    std::erase(split.device, e);
    split.host.push_back(e);
    on_device[static_cast<size_t>(e)] = 0;
  }
  for (const int32_t e : loaded) {
    if (ratio_of_equation_1(p, EquationForm::corrected, split) <= 1) break;
    std::erase(split.host, e);
    split.device.push_back(e);
    on_device[static_cast<size_t>(e)] = 1;
  }
  return SplitModel(p).seconds(on_device);
}

TEST_CASE("equation 1: the first number of loads at which R is 1 or less, on random problems") {
  std::mt19937_64 random(8);
  int on_host = 0, on_device = 0, alone = 0;
  for (int round = 0; round < 3000; ++round) {
    RandomSplitCase c(random, 1 + static_cast<int64_t>(random() % 16));
    c.problem.device_experts = 100;
    const SplitProblem& p = c.get();
    const SplitModel model(p);
    for (const EquationForm form : {EquationForm::corrected, EquationForm::printed}) {
      const ExpertSplit split = split_by_equation_1(p, form);
      // Loaded ones are the most popular; what is given is there in the corrected form.
      std::vector<int32_t> loaded;
      for (const int32_t e : split.device) {
        if (form == EquationForm::printed || !model.is_given(e)) loaded.push_back(e);
      }
      const auto rank = [&](int32_t e) { return std::ranges::find(model.ranking(), e); };
      std::ranges::sort(loaded, {}, rank);  // of equals as the equation takes them
      for (const int32_t e : split.host) {
        if (!loaded.empty()) REQUIRE(model.tokens(loaded.back()) >= model.tokens(e));
        if (form == EquationForm::corrected) REQUIRE_FALSE(model.is_given(e));
      }
      const double ratio = ratio_of_equation_1(p, form, split);
      if (!split.host.empty()) REQUIRE(ratio <= 1);
      if (loaded.empty()) continue;
      ExpertSplit less = split;
      std::erase(less.device, loaded.back());
      less.host.push_back(loaded.back());
      if (form == EquationForm::corrected && split.host.empty()) {
        // The equation loads this one, too; or it stops before, at a split that is no shorter.
        const bool stopped = ratio_of_equation_1(p, form, less) <= 1;
        if (stopped) REQUIRE(split.predicted_s <= seconds_at_stop(p, split, loaded));
        alone += stopped ? 1 : 0;
        continue;
      }
      REQUIRE(ratio_of_equation_1(p, form, less) > 1);
      on_host += split.host.empty() ? 0 : 1;
      on_device += 1;
    }
  }
  CHECK(on_host > 500);
  CHECK(on_device > 1000);
  CHECK(alone > 50);
}

}  // namespace
}  // namespace hearth::test
