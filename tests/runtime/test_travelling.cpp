// Steps whose weights live on the host and are computed with on devices: the bits of one host, with
// any number of slots, and what crosses the links.
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "runtime/model_cases.h"
#include "support/tiny_places.h"

namespace hearth::test {
namespace {

TEST_CASE("travelling: any number of slots and any load ahead give the bits of one host") {
  for (const ModelCase& model : models()) {
    const Outcome expected = on_host(model);
    REQUIRE(std::isfinite(expected.norm));
    for (const int devices : {1, 2}) {
      for (const double spare : {0.0, 0.3, 1.0}) {
        for (const uint64_t ahead : {uint64_t{0}, uint64_t{6000}, uint64_t{1} << 30}) {
          INFO(devices << " devices, " << spare << " spare, " << ahead << " bytes ahead");
          Steps steps = travelling_steps(model, devices, spare, ahead);
          steps.recompute = ahead == 6000;
          steps.inputs_on_host = spare > 0 && spare < 0.5;
          steps.group = devices == 1 && spare > 0.5 ? 4 : 2;
          CHECK(steps.run() == expected);
        }
      }
    }
  }
}

TEST_CASE("travelling: what fits in slots crosses the link once a step, else again") {
  const ModelCase model = models()[0];
  const auto bytes_in = [&](double spare, int count) {
    Steps steps = travelling_steps(model, 1, spare, 0);
    steps.count = count;
    steps.run();
    REQUIRE(steps.moved.size() == 1);
    return steps.moved.front();
  };
  const ResidencyCounts one = bytes_in(1, 1), two = bytes_in(1, 2);
  // An update changes every home, so each step loads all weights once.
  CHECK(one.evictions == 0);
  CHECK(two.bytes_in == 2 * one.bytes_in);
  CHECK(two.bytes_out == 2 * one.bytes_out);
  const ResidencyCounts least = bytes_in(0, 1);
  CHECK(least.evictions > 0);
  CHECK(least.bytes_in > one.bytes_in);
}

TEST_CASE("travelling: a group of micro-batches loads each expert once a direction") {
  const auto bytes_in = [&](int group) {
    Steps steps = travelling_steps(models()[0], 1, 0, 0);
    steps.count = 1;
    steps.group = group;
    steps.run();
    return steps.moved.front().bytes_in;
  };
  CHECK(2 * bytes_in(4) < bytes_in(1));
}

TEST_CASE("travelling: hits are the tokens whose expert was asked for before they were counted") {
  const auto loaded = [&](double spare, uint64_t ahead, int count) {
    Steps steps = travelling_steps(models()[0], 1, spare, ahead);
    steps.count = count;
    steps.group = 4;  // all of the step
    steps.run();
    return steps.loaded;
  };
  const auto none = loaded(0, 0, 1), all = loaded(1, 1 << 30, 1), kept = loaded(1, 0, 1);
  CHECK(none.tokens > 0);
  CHECK(none.came_before < 0.5 * none.tokens);
  CHECK(all.came_before == all.tokens);
  CHECK(kept.tokens == all.tokens);
  // Nothing is asked for ahead, but what forward loaded is still there in backward.
  CHECK(kept.came_before == kept.tokens / 2);
}

/// Bytes to devices, and from them.
std::pair<uint64_t, uint64_t> bytes_of(const std::vector<std::vector<BlockCopy>>& steps) {
  std::pair<uint64_t, uint64_t> sum;
  for (const std::vector<BlockCopy>& step : steps) {
    for (const BlockCopy& copy : step) {
      (copy.from == kHostPlace ? sum.first : sum.second) += copy.bytes;
    }
  }
  return sum;
}

TEST_CASE("travelling: a simulation loads what a run loads") {
  for (const ModelCase& model : models()) {
    for (const int devices : {1, 2}) {
      for (const double spare : {0.0, 0.3, 1.0}) {
        for (const uint64_t ahead : {uint64_t{0}, uint64_t{6000}, uint64_t{1} << 30}) {
          INFO(devices << " devices, " << spare << " spare, " << ahead << " bytes ahead");
          Steps steps = travelling_steps(model, devices, spare, ahead);
          steps.run();
          const auto [in, out] = bytes_of(steps.simulated);
          uint64_t run_in = 0, run_out = 0;
          for (const ResidencyCounts& counts : steps.moved) {
            run_in += counts.bytes_in;
            run_out += counts.bytes_out;
          }
          if (ahead == 0 && spare == 1) {
            CHECK(in == run_in);
            CHECK(out == run_out);
            continue;
          }
          // What is on its way home, and what is loaded ahead, depends on times.
          const double most = ahead == 0 ? 1.05 : 1.25;
          CHECK(static_cast<double>(in) < most * static_cast<double>(run_in));
          CHECK(static_cast<double>(run_in) < most * static_cast<double>(in));
        }
      }
    }
  }
}

TEST_CASE("travelling: an abandoned step changes no weight") {
  Steps steps = travelling_steps(models()[0], 1, 0.3, 1 << 20);
  std::atomic<int> calls{0};  // by the threads of all streams
  steps.options.abandon = [&calls] { return ++calls == 20; };
  const Outcome abandoned = steps.run();
  Steps none = travelling_steps(models()[0], 1, 0.3, 0);
  none.count = 0;
  CHECK(abandoned.weights == none.run().weights);
}

}  // namespace
}  // namespace hearth::test
