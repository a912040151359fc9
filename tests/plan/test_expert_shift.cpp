// Experts that move to attention ranks (Asym-EA): the corrected algorithm, its bounds, and the search.
// Against exhaustive search over small cases.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <numeric>

#include "model/expert_ranks.h"
#include "plan/zebra/expert_shift.h"
#include "plan/zebra_cases.h"
#include "support/raises.h"

namespace hearth::test {
namespace {

using Catch::Approx;

int32_t sum_of(const ExpertShift& shift) { return std::accumulate(shift.begin(), shift.end(), 0); }

/// The case of which research says how often a chunk moves.
ZebraTimes eight_layers(int32_t attention_ranks, int32_t expert_ranks) {
  const ZebraCase c{.layers = 8,
                    .attention_ranks = attention_ranks,
                    .expert_ranks = expert_ranks,
                    .experts = 24,
                    .attention = {0.5, 0},
                    .there = {1, 0},
                    .here = {0.3, 0}};
  return c.times();
}

/// The least simulated time of all shifts.
double least_time(const ZebraTimes& times, int32_t micro_batches) {
  const ShiftChunk chunk = shift_chunk(times.attention_ranks, times.expert_ranks);
  const int32_t most = (times.experts / times.expert_ranks - 1) / chunk.given;
  const ZebraOrder order = theorem_1_order(times.count(), micro_batches);
  ExpertShift shift(times.layers.size());
  double least = simulate_zebra(times, order, shift).time_s;
  for (size_t at = 0; at < shift.size();) {
    if (shift[at] == most * chunk.given) {
      shift[at++] = 0;
      continue;
    }
    shift[at] += chunk.given;
    at = 0;
    least = std::min(least, simulate_zebra(times, order, shift).time_s);
  }
  return least;
}

}  // namespace

TEST_CASE("expert shift: Figure 6 of the paper moves (0\\, 1\\, 1)") {
  CHECK(gather_and_squeeze(figure_6()) == ExpertShift{0, 1, 1});
}

TEST_CASE("expert shift: chunks balance what ranks give and take") {
  for (int32_t attention = 1; attention <= 12; ++attention) {
    for (int32_t experts = 1; experts <= 12; ++experts) {
      if (attention % experts != 0 && experts % attention != 0) continue;
      const ShiftChunk chunk = shift_chunk(attention, experts);
      CHECK(attention * chunk.taken == experts * chunk.given);
      CHECK(chunk.taken >= 1);
      CHECK(chunk.given >= 1);
      CHECK(std::min(chunk.taken, chunk.given) == 1);
    }
  }
}

TEST_CASE("expert shift: each expert has one owner\\, and ranks of a role have equally many") {
  for (const auto& [attention, experts] : {std::pair{1, 2}, {2, 1}, {2, 2}, {4, 2}, {3, 6}}) {
    for (int64_t all = experts; all < 26; ++all) {
      const ShiftChunk chunk = shift_chunk(attention, experts);
      for (int32_t moved = 0; moved <= all / experts - 1; moved += chunk.given) {
        ExpertRanks ranks{attention + experts, 0, attention, moved * experts};
        std::vector<int> owners(static_cast<size_t>(all));
        for (int32_t at = 0; at < ranks.ranks; ++at) {
          const auto [first, last] = ranks.of(at, all);
          for (int32_t e = first; e < last; ++e) {
            ++owners[static_cast<size_t>(e)];
            CHECK(ranks.position_of(e, all) == at);
          }
          const int64_t most = (all + experts - 1) / experts - moved;
          if (at < attention) CHECK(last - first == moved * experts / attention);
          if (at >= attention) CHECK((last - first == most || last - first == most - 1));
          CHECK(ranks.has_experts(at) == (last > first));
        }
        CHECK(std::ranges::all_of(owners, [](int owner) { return owner == 1; }));
      }
    }
  }
}

TEST_CASE("expert shift: each time goes with its own number of experts") {
  // With n1 and n2 swapped, as the paper prints them, it would be 10 and 30 chunks.
  CHECK(sum_of(gather_and_squeeze(eight_layers(2, 4))) == 15);
  CHECK(sum_of(gather_and_squeeze(eight_layers(4, 2))) == 20 * 2);
}

TEST_CASE("expert shift: rounding takes no chunk away") {
  // Ten layers gather 0.1 each: exactly one chunk of 1, though the sum of the doubles is less.
  const ZebraCase c{
      .layers = 10, .experts = 2, .attention = {0.9, 0}, .there = {1, 0}, .here = {1, 0}};
  CHECK(gather_and_squeeze(c.times()) == ExpertShift{0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
}

TEST_CASE("expert shift: bounds of memory hold\\, or an error has the numbers") {
  ZebraRandom random(5);
  int refused = 0;
  for (int i = 0; i < 400; ++i) {
    ZebraCase c = random.any(random.integer(1, 6));
    c.attention_ranks = 1 << random.integer(0, 2);
    c.expert_ranks = 1 << random.integer(0, 2);
    c.experts = c.expert_ranks * random.integer(1, 6);
    const ZebraTimes times = c.times();
    const ShiftBounds bounds{random.integer(-3, 40), random.integer(0, 30)};
    const ShiftChunk chunk = shift_chunk(c.attention_ranks, c.expert_ranks);
    const int64_t of_chunk = int64_t{chunk.given} * c.expert_ranks;
    const int64_t least = (std::max<int64_t>(0, bounds.least_moved) + of_chunk - 1) / of_chunk;
    const int64_t room = int64_t{c.layers} * ((c.experts / c.expert_ranks - 1) / chunk.given);
    const bool can = least <= std::min(bounds.most_taken / chunk.taken, room);
    ChosenShift chosen;
    const Raised raised = raised_by([&] { chosen = choose_expert_shift(times, 2, bounds); });
    if (!can) {
      ++refused;
      CHECK(raised.code == ExitCode::usage);
      CHECK(raised.says(std::to_string(bounds.least_moved)));
      continue;
    }
    for (const ExpertShift& shift : {chosen.shift, gather_and_squeeze(times, bounds)}) {
      const int64_t moved = int64_t{sum_of(shift)} * c.expert_ranks;
      CHECK(moved >= bounds.least_moved);
      CHECK(moved <= bounds.most_taken * c.attention_ranks);
      for (const int32_t own : shift) {
        CHECK(own % chunk.given == 0);
        CHECK(own < c.experts / c.expert_ranks);
      }
    }
  }
  CHECK(refused > 50);
}

TEST_CASE("expert shift: what must move though attention takes longer spreads evenly") {
  ZebraCase c{.layers = 4, .attention = {5, 10}};
  CHECK(gather_and_squeeze(c.times(), {2, 100}) == ExpertShift{0, 1, 0, 1});
  CHECK(gather_and_squeeze(c.times(), {7, 100}) == ExpertShift{1, 2, 2, 2});
  CHECK(gather_and_squeeze(c.times()).empty());
  CHECK(choose_expert_shift(c.times(), 3).shift.empty());
}

TEST_CASE("expert shift: slower attention never moves more experts") {
  ZebraRandom random(6);
  for (int i = 0; i < 100; ++i) {
    ZebraCase c = random.any(random.integer(1, 12));
    c.experts = 12;
    int32_t before = std::numeric_limits<int32_t>::max();
    for (int step = 0; step < 20; ++step) {
      c.attention.forward += 0.05;
      const int32_t now = sum_of(gather_and_squeeze(c.times()));
      CHECK(now <= before);
      before = now;
    }
  }
}

TEST_CASE("expert shift: layers without experts give none") {
  ZebraTimes times = figure_6();
  times.layers[1] = {};
  const ExpertShift shift = gather_and_squeeze(times);
  REQUIRE(shift.size() == 3);
  CHECK(shift[1] == 0);
  const ExpertShift must = gather_and_squeeze(times, {10, 10});
  CHECK(must == ExpertShift{5, 0, 5});
}

TEST_CASE("expert shift: the search is near the best of all shifts\\, and never a loss") {
  ZebraRandom random(7);
  double of_seed = 0, of_search = 0;
  int worse_seeds = 0;
  const int cases = 60;
  for (int i = 0; i < cases; ++i) {
    ZebraCase c = random.any(random.integer(3, 4));
    c.attention_ranks = random.integer(1, 2);
    c.expert_ranks = random.integer(1, 2);
    c.experts = c.expert_ranks * 4;
    const ZebraTimes times = c.times();
    const ZebraOrder order = theorem_1_order(c.layers, 3);
    const double none = simulate_zebra(times, order).time_s;
    const double seed = simulate_zebra(times, order, gather_and_squeeze(times)).time_s;
    const ChosenShift chosen = choose_expert_shift(times, 3);
    const double least = least_time(times, 3);
    CHECK(chosen.unshifted_s == Approx(none));
    CHECK(chosen.time_s <= none);
    CHECK(chosen.time_s == Approx(simulate_zebra(times, order, chosen.shift).time_s));
    CHECK(chosen.time_s >= least * (1 - 1e-9));
    of_seed += seed / least - 1;
    of_search += chosen.time_s / least - 1;
    worse_seeds += seed > none ? 1 : 0;
    CHECK(chosen.time_s < least * 1.05);
  }
  INFO("slower than the best: seeds " << of_seed / cases << ", search " << of_search / cases
                                      << "; seeds slower than none " << worse_seeds);
  CHECK(of_search / cases < 0.002);
  CHECK(of_seed / cases > 10 * of_search / cases);
}

TEST_CASE("expert shift: given numbers that cannot be are refused with what would do") {
  const auto refused = [](const ExpertShift& shift, int32_t m, int32_t n, int64_t experts,
                          const std::string& part) {
    const Raised raised = raised_by([&] { require_shift(shift, m, n, experts, 3, "shift"); });
    INFO(raised.message);
    CHECK(raised.code == ExitCode::usage);
    CHECK(raised.says(part));
  };
  CHECK_NOTHROW(require_shift({0, 1, 3}, 2, 2, 8, 3, "shift"));
  CHECK_NOTHROW(require_shift({0, 2, 2}, 4, 2, 8, 3, "shift"));
  refused({0, 1}, 2, 2, 8, "has 2 numbers, and the model has 3 layers");
  refused({0, 4, 0}, 2, 2, 8, "0 to 3 would do");
  refused({0, 1, 0}, 4, 2, 8, "multiples of 2 up to 2 would do");
  refused({1, 0, 0}, 2, 2, 3, "0 alone would do");
  refused({-1, 0, 0}, 2, 2, 8, "-1 experts cannot move");
}

}  // namespace hearth::test
