// Latency and rate of every pair of ranks, on links whose speed is given.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "base/sanitized.h"
#include "base/stopwatch.h"
#include "comm/pair_rates.h"
#include "support/thread_ranks.h"

namespace hearth::test {
namespace {

/// What each of the ranks measured.
std::vector<std::vector<MeasuredPair>> measured(int32_t ranks, LinkRate links, PairBounds bounds) {
  RankOptions options;
  options.world.ranks = ranks;
  options.world.links = links;
  options.world.silence_s = 0;
  options.checked = true;
  std::vector<std::vector<MeasuredPair>> of_rank(static_cast<size_t>(ranks));
  const auto ends = run_ranks(options, [&](World& world) {
    of_rank[static_cast<size_t>(world.rank())] = measure_pairs(world, bounds);
  });
  CHECK(first_line(ends).empty());
  return of_rank;
}

constexpr double kRate = 4e6, kLatency = 2e-3;

/// Whether a pair comes near its link's numbers. Other work on the machine can keep it from that.
bool is_close(const MeasuredPair& pair) {
  const bool alone = pair.latency_s < 2 * kLatency && pair.bytes_per_s > kRate / 2;
  // Two pairs share the link of their sender.
  return alone && pair.together < 0.7 * kRate && pair.together > 0.3 * kRate;
}

TEST_CASE("pair rates: every ordered pair\\, alone and together\\, the same at all ranks") {
  bool close = false;
  for (int attempt = 0; attempt < 8 && !close; ++attempt) {
    const auto of_rank = measured(3, {kRate, kLatency}, {2, 1 << 20});
    REQUIRE(of_rank[0].size() == 6);
    close = std::ranges::all_of(of_rank[0], is_close);
    size_t next = 0;
    for (int32_t from = 0; from < 3; ++from) {
      for (int32_t to = 0; to < 3; ++to) {
        if (from == to) continue;
        const MeasuredPair& pair = of_rank[0][next];
        UNSCOPED_INFO(from << " to " << to << ": " << pair.bytes_per_s << ", " << pair.latency_s
                           << ", " << pair.together);
        CHECK(pair.from == from);
        CHECK(pair.to == to);
        CHECK(pair.latency_s >= kLatency);
        CHECK(pair.bytes_per_s <= 1.1 * kRate);
        CHECK(pair.together <= pair.bytes_per_s);
        CHECK(pair.together > 0);
        for (const auto& other : of_rank) CHECK(other[next].bytes_per_s == pair.bytes_per_s);
        ++next;
      }
    }
    if (kSanitized) return;  // their threads are too slow to come near
  }
  CHECK(close);
}

TEST_CASE("pair rates: one rank has no pair\\, and slow links do not take longer") {
  CHECK(measured(1, {}, {})[0].empty());
  const Stopwatch watch;
  const auto of_rank = measured(2, {20e3, 0}, {1, 1 << 20});
  CHECK(watch.seconds() < 40);  // one of the largest messages alone would take 52
  REQUIRE(of_rank[1].size() == 2);
  CHECK(of_rank[1][0].bytes_per_s < 25e3);
}

}  // namespace
}  // namespace hearth::test
