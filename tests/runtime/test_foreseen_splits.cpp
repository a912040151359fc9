// What a split asks of the caches before its tasks begin: the experts that it gives to the device, and
// of the others nothing that is still queued.
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <set>
#include <utility>

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
  LoadRule rule_of(const LoadPhases& phases) const {
    LoadRule rule = model.loads;
    rule.phases = phases;
    return rule;
  }
  explicit ForeseenCase(uint64_t ahead, const LoadPhases& phases = {}, int64_t layers = 1)
      : travelling(travelling_of(splits, ahead)),
        model(tiny_config({{"num_hidden_layers", layers}}), cpu(), DType::f32, 1, {},
              TinyPlaces{{slow_device()}, {}}),
        list(list_of()),
        caches(model, list, travelling),
        residency(*model.residencies[1]),
        away(residency, model.table, list, 1, rule_of(phases)) {
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

TEST_CASE("foreseen splits: what is foretold is asked for, and a split takes it back") {
  ForeseenCase c(1 << 30);
  const BlockId other = c.experts.front(), last = c.experts.back();
  const std::span<const BlockId> most = std::span(c.experts).subspan(1);
  c.away.foretell(c.task, most);
  CHECK(c.residency.where(most.front()) == Where::coming);
  CHECK(c.residency.where(last) == Where::queued);
  CHECK(c.residency.where(other) == Where::home);
  c.away.foretell(c.task, std::vector{other});  // better known
  CHECK(c.residency.where(last) == Where::home);
  CHECK(c.residency.where(other) != Where::home);
  CHECK(c.residency.counts().taken_back > 0);
  c.away.foresee(c.task, most);
  CHECK(c.residency.where(last) == Where::queued);
}

TEST_CASE("foreseen splits: without inter-expert a split asks for nothing") {
  ForeseenCase c(1 << 30, {true, true, false});
  c.away.foresee(c.task, c.experts);
  for (const BlockId block : c.experts) CHECK(c.residency.where(block) == Where::home);
  c.away.foretell(c.task, c.experts);
  CHECK(c.residency.where(c.experts.front()) == Where::coming);
}

TEST_CASE("foreseen splits: a step begins with loads for its first tasks") {
  ForeseenCase c(1 << 30);
  const TravelTurns turns(c.residency.items(), c.model.table, c.list, 1, c.rule_of({}));
  const BlockId first = turns.turns().front().blocks.front();
  CHECK(c.residency.where(first) == Where::home);
  c.away.begin_loads();
  CHECK(c.residency.where(first) == Where::coming);
}

TEST_CASE("foreseen splits: without inter-stage nothing is asked for behind the task that runs") {
  for (const bool inter_stage : {false, true}) {
    const ForeseenCase c(1 << 30, {inter_stage, true, true});
    const TravelTurns turns(c.residency.items(), c.model.table, c.list, 1,
                            c.rule_of({inter_stage, true, true}));
    CHECK(turns.ahead(0).wants.load.empty() == !inter_stage);
    CHECK((turns.ahead(0).end == 1) == !inter_stage);
    const TravelTurns::Ahead first = turns.at_begin();
    CHECK(first.wants.load.empty() == !inter_stage);
    CHECK((first.end == 0) == !inter_stage);
    if (inter_stage) CHECK(first.wants.load.front().block == turns.turns().front().blocks.front());
  }
}

TEST_CASE("foreseen splits: of a later stage, experts are asked for by rank across its layers") {
  ForeseenCase c(1 << 30, {}, 3);
  LoadRule rule = c.rule_of({});
  rule.stages = {0, 1, 1};
  const auto wants_of = [&] {
    TravelTurns turns(c.residency.items(), c.model.table, c.list, 1, rule);
    for (TaskId t = 0; t < std::ssize(c.list.tasks); ++t) {
      const Task& task = c.list.tasks[static_cast<size_t>(t)];
      if (task.place != 1 || turns.decided(t) == nullptr) continue;
      const BlockId first = c.model.table.find_block(BlockKind::expert, task.layer, 0);
      turns.choose(t, std::vector{first + 2, first});
    }
    return turns.ahead(0).wants.load;
  };
  const std::vector<BlockWant> wants = wants_of();
  std::set<std::pair<BlockId, bool>> once;
  std::vector<std::pair<int32_t, int32_t>> experts;  // of the later stage's forward
  for (const BlockWant& want : wants) {
    CHECK(once.emplace(want.block, want.with_gradient).second);
    const Block& block = c.model.table.block(want.block);
    if (want.with_gradient || block.layer < 1 || block.layer > 2) continue;
    if (block.kind == BlockKind::expert) {
      experts.emplace_back(block.layer, block.expert);
    } else {
      CHECK(experts.empty());  // what all of its layers need comes first
    }
  }
  CHECK(experts == std::vector<std::pair<int32_t, int32_t>>{{1, 2}, {2, 2}, {1, 0}, {2, 0}});
  for (size_t i = 1; i < wants.size(); ++i) CHECK(wants[i - 1].rank <= wants[i].rank);
  // Half of the bytes are for the first of them.
  rule.ahead_bytes = 0;
  for (const BlockWant& want : wants) {
    if (want.with_gradient) continue;
    rule.ahead_bytes += c.residency.items().layout(want.block, Cargo::weights).slot_bytes();
  }
  const uint64_t all = std::exchange(rule.ahead_bytes, rule.ahead_bytes / 2);
  CHECK(wants_of().size() < wants.size());
  CHECK(wants_of().front().block == wants.front().block);
  CHECK(all > rule.ahead_bytes);
}

/// Foretells for every layer that the device gets the experts of a list; then gives it these.
class ForetellingSplits final : public SplitRule {
 public:
  ForetellingSplits(std::vector<int32_t> foretold, std::vector<size_t> given, bool when_it_begins)
      : foretold_(std::move(foretold)), given_(std::move(given)), when_it_begins_(when_it_begins) {}
  void divide(int32_t, std::span<const double>, std::span<Place> places) override {
    std::ranges::fill(places, kHostPlace);
    for (const size_t e : given_) places[e] = 1;
  }
  std::vector<ForetoldExperts> foretold() const override {
    if (!when_it_begins_) return {};
    return {{0, foretold_}, {1, foretold_}, {2, foretold_}};
  }
  std::vector<ForetoldExperts> foretold_behind(int32_t layer) const override {
    if (when_it_begins_) return {};
    return {{layer + 1, foretold_}, {layer + 2, foretold_}};
  }

 private:
  std::vector<int32_t> foretold_;
  std::vector<size_t> given_;
  bool when_it_begins_;
};

TEST_CASE("foreseen splits: a rule's foresight is a hit where the split follows it") {
  const auto loaded = [](const std::vector<int32_t>& foretold, bool when_it_begins) {
    ForetellingSplits splits(foretold, {1, 2}, when_it_begins);
    Steps steps = steps_behind_link(models()[0], splits, 0);
    steps.travelling->ahead_bytes = 1 << 30;
    steps.count = 1;
    steps.travelling->phases.inter_stage = when_it_begins;
    steps.run();
    return steps.loaded;
  };
  const auto share = [](const Executor::LoadedExperts& of) { return of.came_before / of.tokens; };
  CHECK(share(loaded({1, 2}, true)) == 1);
  CHECK(share(loaded({0, 3}, true)) == 0.5);  // backward alone
  const double right = share(loaded({1, 2}, false)), wrong = share(loaded({0, 3}, false));
  CHECK(right > wrong);
}

/// Gives each layer's device the experts of a list, and foretells these once the layer is entered.
class EnteredSplits final : public SplitRule {
 public:
  explicit EnteredSplits(std::vector<int32_t> foretold) : foretold_(std::move(foretold)) {}
  void entered(int32_t layer, std::span<const LayerSample> samples) override {
    std::vector<int64_t>& tokens = entered_[layer];
    for (const LayerSample& sample : samples) {
      tokens.push_back(sample.tokens);
      rows_[layer].insert(rows_[layer].end(), sample.residual.begin(), sample.residual.end());
    }
  }
  void sampled(const RouterSample& sample) override {
    is_first_ = is_first_ && entered_.contains(sample.layer);
    has_normed_ = has_normed_ || !sample.normed.empty();
  }
  void divide(int32_t, std::span<const double>, std::span<Place> places) override {
    std::ranges::fill(places, kHostPlace);
    places[1] = places[2] = 1;
  }
  std::vector<ForetoldExperts> foretold_here(int32_t layer) const override {
    return {{layer, foretold_}};
  }
  const std::map<int32_t, std::vector<int64_t>>& tokens() const { return entered_; }
  const std::map<int32_t, std::vector<float>>& rows() const { return rows_; }
  /// Each layer was entered before its router's samples came, which had none of what the router read.
  bool is_first() const { return is_first_ && !has_normed_; }

 private:
  std::vector<int32_t> foretold_;
  std::map<int32_t, std::vector<int64_t>> entered_;  // by layer
  std::map<int32_t, std::vector<float>> rows_;
  bool is_first_ = true, has_normed_ = false;
};

TEST_CASE("foreseen splits: what enters a layer is sampled, and what it foretells is a hit") {
  const auto loaded = [](EnteredSplits& splits) {
    Steps steps = steps_behind_link(models()[0], splits, 0);
    steps.travelling->ahead_bytes = 1 << 30;
    steps.travelling->phases.inter_stage = false;  // so that nothing else is loaded ahead
    steps.travelling->samples = SampledRows::layer;
    Steps host(models()[0].config);
    host.count = 1;
    CHECK(steps.run() == host.run());
    CHECK(splits.is_first());
    return steps.loaded.came_before / steps.loaded.tokens;
  };
  EnteredSplits right({1, 2}), wrong({0, 3});
  CHECK(loaded(right) > loaded(wrong));
  const std::vector<int64_t> tokens(right.tokens().at(0));
  CHECK(tokens.size() == static_cast<size_t>(kMicroBatches));
  CHECK(tokens.front() == 13);
  CHECK(right.rows() == wrong.rows());
  for (const auto& [layer, rows] : right.rows()) {
    CHECK(right.tokens().at(layer) == tokens);
    CHECK(std::ranges::any_of(rows, [](float x) { return x != 0; }));
  }
  CHECK_FALSE(right.rows().at(0) == right.rows().rbegin()->second);
}

TEST_CASE("foreseen splits: samples of what enters a layer come before its attention") {
  EnteredSplits splits({});
  Steps steps = steps_behind_link(models()[0], splits, 0);
  steps.travelling->samples = SampledRows::layer;
  const Schedule list = steps.list();
  std::map<int32_t, std::vector<TaskKind>> order;
  for (const Task& task : list.tasks) {
    const bool is_one = task.kind == TaskKind::sample || task.kind == TaskKind::foretell ||
                        task.kind == TaskKind::attention || task.kind == TaskKind::decide;
    if (task.phase != Phase::forward || !is_one) continue;
    CHECK((task.place == kHostPlace) ==
          (task.kind == TaskKind::foretell || task.kind == TaskKind::decide));
    std::vector<TaskKind>& of = order[task.layer];
    if (of.empty() || of.back() != task.kind) of.push_back(task.kind);
  }
  const std::vector<TaskKind> all = {TaskKind::sample, TaskKind::foretell, TaskKind::attention,
                                     TaskKind::decide};
  CHECK(std::ranges::count(order, all, [](const auto& of) { return of.second; }) > 1);
  for (const auto& [layer, kinds] : order) {
    CHECK(
        (kinds == all || kinds == std::vector{TaskKind::attention}));  // the latter: a dense layer
  }
}

}  // namespace
}  // namespace hearth::test
