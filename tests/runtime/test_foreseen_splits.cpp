// What a split asks of the caches before its tasks begin: the experts that it gives to the device, and
// of the others nothing that is still queued.
#include <catch2/catch_test_macros.hpp>
#include <map>

#include "runtime/model_cases.h"
#include "support/tiny_places.h"

namespace hearth::test {
namespace {

using ExpertsByStep = std::vector<std::vector<size_t>>;

/// Gives the device the experts of a list, in each step those of the next one.
class FixedSplits final : public SplitRule {
 public:
  explicit FixedSplits(ExpertsByStep by_step) : by_step_(std::move(by_step)) {}
  void divide(int32_t layer, std::span<const double> /*tokens*/, std::span<Place> places) override {
    std::ranges::fill(places, kHostPlace);
    const auto step = static_cast<size_t>(calls_[layer]++);
    for (const size_t e : by_step_.at(step)) places[e] = 1;
  }

 private:
  ExpertsByStep by_step_;
  std::map<int32_t, int> calls_;
};

/// Steps of one device behind a link that takes a moment for each expert.
Steps steps_behind_link(const ModelCase& model, SplitRule& splits, double bytes_per_s) {
  VirtualOptions options;
  options.h2d = options.d2h = bytes_per_s;
  Steps steps(model.config);
  steps.adapters = model.adapters;
  steps.places = {{make_virtual_device(options)}, {}};
  steps.travelling.emplace();
  steps.travelling->spare = 1;
  steps.travelling->splits = &splits;
  steps.group = kMicroBatches;
  steps.count = 1;
  return steps;
}

TEST_CASE("foreseen splits: loads that the split does not want are dropped while they are queued") {
  for (const size_t of : {size_t{0}, size_t{1}}) {
    const ModelCase model = models()[of];
    FixedSplits none(ExpertsByStep(1));
    Steps steps = steps_behind_link(model, none, 1e6);
    steps.travelling->ahead_bytes = 1 << 30;  // the plan expects all experts at the device
    CHECK(steps.run() == [&] {
      Steps host(model.config);
      host.adapters = model.adapters;
      host.count = 1;
      return host.run();
    }());
    CHECK(steps.moved.front().taken_back > 0);
    CHECK(steps.moved.front().expert_leases == 0);
  }
}

TEST_CASE("foreseen splits: what is asked for once the tokens are known is no hit") {
  const auto loaded = [](ExpertsByStep by_step) {
    FixedSplits splits(std::move(by_step));
    Steps steps = steps_behind_link(models()[0], splits, 0);
    steps.travelling->ahead_bytes = 1 << 30;
    steps.count = 2;
    steps.run();
    return steps.loaded;  // in the second step, before which an update has changed all weights
  };
  const auto same = loaded({{1, 2}, {1, 2}}), others = loaded({{0, 3}, {1, 2}});
  CHECK(same.tokens > 0);
  CHECK(same.came_before == same.tokens);
  CHECK(others.tokens == same.tokens);
  CHECK(others.came_before == others.tokens / 2);  // those of backward
}

/// A device whose link takes a second for a block, and a decided task of a layer.
struct ForeseenCase {
  FixedSplits splits{ExpertsByStep{}};
  Travelling travelling;
  TinyModel model;
  Schedule list;
  Caches caches;
  Residency& residency;
  TravellingWeights away;
  TaskId task = -1;
  std::vector<BlockId> experts;

  static std::shared_ptr<Device> slow_device() {
    VirtualOptions options;
    options.h2d = options.d2h = 10e3;
    return make_virtual_device(options);
  }
  static Travelling travelling_of(SplitRule& splits, uint64_t ahead) {
    Travelling of;
    of.spare = 1;
    of.ahead_bytes = ahead;
    of.splits = &splits;
    return of;
  }
  Schedule list_of() {
    model.compute = travelling.compute(model);
    model.splits = &splits;
    return single_planner().train(model.input(kTokens, kTokens, 2), 2, false).schedule;
  }
  explicit ForeseenCase(uint64_t ahead)
      : travelling(travelling_of(splits, ahead)),
        model(tiny_config({{"num_hidden_layers", 1}}), cpu(), DType::f32, 1, {},
              TinyPlaces{{slow_device()}, {}}),
        list(list_of()),
        caches(model, list, travelling),
        residency(*model.residencies[1]),
        away(residency, model.table, list, 1, model.loads) {
    for (TaskId t = 0; t < std::ssize(list.tasks) && task < 0; ++t) {
      if (list.tasks[static_cast<size_t>(t)].place == 1 && away.is_decided(t)) task = t;
    }
    const BlockId first = model.table.find_block(BlockKind::expert, 0, 0);
    for (BlockId e = 0; e < model.spec.experts; ++e) experts.push_back(first + e);
  }
  void ask_for_all() {
    Wants wants;
    for (const BlockId block : experts) wants.load.push_back({block, Priority::stage, 0, false});
    residency.apply(wants);
  }
};

TEST_CASE("foreseen splits: of what is queued the split's experts stay, what is coming comes") {
  ForeseenCase c(1 << 30);
  REQUIRE(c.experts.size() > 3);
  c.ask_for_all();
  const BlockId first = c.experts.front(), last = c.experts.back();
  REQUIRE(c.residency.where(first) == Where::coming);
  REQUIRE(c.residency.where(last) == Where::queued);
  c.away.foresee(c.task, std::vector{last});
  CHECK(c.residency.where(first) == Where::coming);
  CHECK(c.residency.where(last) != Where::home);
  int64_t queued = 0;
  for (const BlockId block : c.experts) queued += c.residency.where(block) == Where::queued ? 1 : 0;
  CHECK(queued <= 1);
  CHECK(c.residency.counts().taken_back > 0);
}

TEST_CASE("foreseen splits: no more is asked for than the rule's bytes") {
  const auto asked = [](uint64_t ahead) {
    ForeseenCase c(ahead);
    c.away.foresee(c.task, c.experts);
    return std::ranges::count_if(
        c.experts, [&](BlockId block) { return c.residency.where(block) != Where::home; });
  };
  ForeseenCase any(0);
  const auto each = any.residency.weights(any.experts.front()).slot_bytes();
  CHECK(asked(0) == 0);
  CHECK(asked(2 * each + 1) == 2);
  CHECK(asked(1 << 30) == std::ssize(any.experts));
}

}  // namespace
}  // namespace hearth::test
