// Steps whose experts are divided between a device and the host by a rule that decides while the step
// runs: whatever it says, the bits of one host.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <mutex>
#include <set>

#include "modes/pipeline.h"
#include "runtime/model_cases.h"
#include "support/tiny_places.h"

namespace hearth::test {
namespace {

/// Gives each expert to the device with a chance, anew at each call.
class DrawnSplits final : public SplitRule {
 public:
  DrawnSplits(std::vector<Stage> stages, double share, uint64_t seed)
      : stages_(std::move(stages)), share_(share), random_(seed, RandomSite::shuffle, 9) {}

  void divide(int32_t layer, std::span<const double> tokens, std::span<Place> places) override {
    const std::lock_guard lock(mutex_);
    const auto stage = std::ranges::find_if(
        stages_, [&](const Stage& s) { return s.first <= layer && layer <= s.last; });
    for (Place& place : places) {
      place = random_.uniform(draw_++) < share_ ? stage->place : kHostPlace;
      (place == kHostPlace ? on_host : on_device) += 1;
    }
    const size_t experts = places.size();
    micro_batches.insert(tokens.size() / experts);
    double sum = 0;
    for (const double of : tokens) sum += of;
    if (layer == 0) tokens_of_layer_0 += sum;
  }

  int64_t on_host = 0, on_device = 0;
  std::set<size_t> micro_batches;  // that decisions knew the tokens of
  double tokens_of_layer_0 = 0;

 private:
  std::vector<Stage> stages_;
  double share_;
  Random random_;
  uint64_t draw_ = 0;
  std::mutex mutex_;
};

Steps decided_steps(const ModelCase& model, int devices, DrawnSplits& splits) {
  Steps steps(model.config);
  steps.adapters = model.adapters;
  steps.places = {virtual_devices(devices), {}};
  Travelling travelling;
  if (devices == 2) {
    travelling.stages = {{1, -1, 0}, {2, 1, 9}};
    steps.planner = &pipeline_planner();
    steps.places.host_lanes = 2;
  }
  travelling.splits = &splits;
  steps.travelling = travelling;
  return steps;
}

std::vector<Stage> stages_of(int devices) {
  if (devices == 1) return {{.place = 1}};
  return {{1, -1, 0}, {2, 1, 9}};
}

TEST_CASE("decided splits: whatever the rule says, the bits of one host") {
  uint64_t seed = 1;
  for (const ModelCase& model : models()) {
    const Outcome expected = on_host(model);
    REQUIRE(std::isfinite(expected.norm));
    for (const int devices : {1, 2}) {
      for (const double share : {0.0, 0.5, 1.0}) {
        for (const uint64_t ahead : {uint64_t{0}, uint64_t{6000}, uint64_t{1} << 30}) {
          DrawnSplits splits(stages_of(devices), share, seed++);
          Steps steps = decided_steps(model, devices, splits);
          steps.travelling->ahead_bytes = ahead;
          steps.travelling->spare = seed % 3 == 0 ? 0.0 : seed % 3 == 1 ? 0.4 : 1.0;
          steps.recompute = ahead == 6000;
          steps.inputs_on_host = seed % 4 < 2;
          steps.group = devices == 1 && seed % 2 == 0 ? 4 : 2;
          INFO(devices << " devices, share " << share << ", " << ahead << " bytes ahead, seed "
                       << seed);
          CHECK(steps.run() == expected);
          CHECK((share == 1 || splits.on_host > 0));
          CHECK((share == 0 || splits.on_device > 0));
        }
      }
    }
  }
}

TEST_CASE("decided splits: a rule knows the tokens of all micro-batches of a group") {
  const ModelCase model = models()[0];
  DrawnSplits splits(stages_of(1), 0.5, 3);
  Steps steps = decided_steps(model, 1, splits);
  steps.group = 4;
  steps.count = 1;
  const Outcome outcome = steps.run();
  CHECK(splits.micro_batches == std::set<size_t>{4});
  double sum = 0;
  for (const double of : outcome.counts) sum += of;
  CHECK(splits.tokens_of_layer_0 == sum);
}

TEST_CASE("decided splits: what the host computes crosses no link") {
  const ModelCase model = models()[0];
  const auto bytes_in = [&](double share) {
    DrawnSplits splits(stages_of(1), share, 5);
    Steps steps = decided_steps(model, 1, splits);
    steps.travelling->spare = 1;
    steps.count = 1;
    steps.group = 4;
    steps.run();
    return steps.moved.front();
  };
  const ResidencyCounts none = bytes_in(0), half = bytes_in(0.5), all = bytes_in(1);
  CHECK(none.expert_leases == 0);
  CHECK(none.bytes_in < half.bytes_in);
  CHECK(half.bytes_in < all.bytes_in);
}

TEST_CASE("decided splits: a schedule orders the adders to an expert's gradient, group by group") {
  DrawnSplits splits(stages_of(1), 0.5, 7);
  const ModelCase model = models()[0];
  Steps steps = decided_steps(model, 1, splits);
  const Schedule list = steps.list();
  const auto after = dependencies(list);
  std::vector<TaskId> adders;
  for (TaskId t = 0; t < std::ssize(list.tasks); ++t) {
    const Task& task = list.tasks[static_cast<size_t>(t)];
    if (list.is_decided(task) && task.phase == Phase::backward && task.layer == 0) {
      adders.push_back(t);
    }
  }
  REQUIRE(adders.size() == 4);  // two groups at two places
  const auto follows = [&](size_t later, size_t earlier) {
    return std::ranges::count(after[static_cast<size_t>(adders[later])], adders[earlier]) > 0;
  };
  CHECK_FALSE(follows(1, 0));
  CHECK_FALSE(follows(3, 2));
  for (const size_t later : {2u, 3u}) {
    CHECK(follows(later, 0));
    CHECK(follows(later, 1));
  }
}

}  // namespace
}  // namespace hearth::test
