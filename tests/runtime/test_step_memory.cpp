// A step takes no memory from the heap, once the first one has been made: neither the executor, nor the
// bodies of the tasks, nor the ops and the libraries that they call. Weights that travel, splits that a
// rule decides, and messages between ranks are not of this test (docs/main-path.md).
#include <catch2/catch_test_macros.hpp>
#include <string>

#include "model_cases.h"
#include "support/counted_heap.h"

namespace hearth::test {
namespace {

/// Of each step but the first, as a session runs it: with a trace and all calls.
std::vector<int64_t> heap_calls_of(Steps steps) {
  std::vector<int64_t> taken;
  Trace trace;
  int64_t before = 0;
  steps.count = 3;
  steps.options.trace = &trace;
  steps.options.abandon = [] { return false; };
  steps.options.before_update = [](const Task&) {};
  steps.before_step = [&] { before = heap_calls(); };
  steps.after_step = [&] { taken.push_back(heap_calls() - before); };
  steps.run();
  REQUIRE(taken.size() == 3);
  taken.erase(taken.begin());
  return taken;
}

const std::vector<int64_t> kNone(2, 0);

TEST_CASE("step memory: what is counted") {
  const int64_t before = heap_calls();
  const std::string text(100, 'x');
  CHECK(heap_calls() == before + 1);
}

TEST_CASE("step memory: a step on the host takes nothing from the heap") {
  for (const ModelCase& model : models()) {
    for (const Compute compute : {Compute::f32, Compute::bf16}) {
      for (const int workers : {1, 3}) {
        for (const int64_t group : {1, 4}) {
          CAPTURE(model.adapters.size(), compute, workers, group);
          Steps steps(model.config);
          steps.adapters = model.adapters;
          steps.settings = [&](RunSettings& of) { of.compute = compute; };
          steps.workers = workers;
          steps.group = group;
          steps.recompute = group == 1;
          CHECK(heap_calls_of(steps) == kNone);
        }
      }
    }
  }
}

TEST_CASE("step memory: nor with dropout, noise, z-loss, pooled losses and LoRA+") {
  for (const bool rotates : {false, true}) {
    Steps steps;
    steps.adapters = {"attention", "experts", "head"};
    steps.rotates = rotates;
    steps.settings = [](RunSettings& of) {
      of.lora_dropout = 0.25;
      of.noise = 0.1;
      of.z_loss = 0.01;
      of.aux_mode = AuxLossMode::hf;
      of.lora_plus = 4;
    };
    CHECK(heap_calls_of(steps) == kNone);
  }
}

TEST_CASE("step memory: nor at several places, where blocks stay at theirs") {
  for (const bool host_lanes : {false, true}) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      CAPTURE(host_lanes, seed);
      Steps steps;
      steps.adapters = {"attention", "experts"};
      steps.places = places_of({.hosts = 2, .devices = 2, .seed = seed}, host_lanes);
      steps.workers = 2;
      CHECK(heap_calls_of(steps) == kNone);
    }
  }
}

}  // namespace
}  // namespace hearth::test
