// Steps in which the host and a device compute one expert of a layer together, each a range of its width.
// Rounding changes, so steps are compared with those of one host within the bounds of docs/numbers.md.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <mutex>

#include "modes/pipeline.h"
#include "runtime/model_cases.h"
#include "support/tiny_places.h"

namespace hearth::test {
namespace {

/// Gives each expert to the device with a chance, and divides one of the others. A function of the layer
/// and its tokens, whatever the order of the calls.
class DrawnDivisions final : public SplitRule {
 public:
  DrawnDivisions(int devices, double share, uint64_t seed, bool divides = true)
      : devices_(devices), share_(share), seed_(seed), divides_(divides) {}

  void divide(int32_t layer, std::span<const double> tokens, std::span<Place> places) override {
    uint64_t of_tokens = seed_;
    for (const double n : tokens) of_tokens = of_tokens * 1000003 + static_cast<uint64_t>(n);
    const Random random(of_tokens, RandomSite::shuffle, static_cast<uint32_t>(layer));
    const std::lock_guard lock(mutex_);
    DividedExpert& divided = divided_[static_cast<size_t>(layer)];
    divided = {};
    for (size_t e = 0; e < places.size(); ++e) {
      const bool here = random.uniform(3 * e) < share_;
      places[e] = here ? (devices_ == 1 || layer == 0 ? Place{1} : Place{2}) : kHostPlace;
      double sum = 0;
      for (size_t i = e; i < tokens.size(); i += places.size()) sum += tokens[i];
      if (!divides_ || here || sum == 0 || random.uniform(3 * e + 1) > 0.6) continue;
      divided = {static_cast<int32_t>(e), random.uniform(3 * e + 2) < 0.5 ? 4 : 8};
    }
    count += divided.any() ? 1 : 0;
  }
  DividedExpert divided(int32_t layer) const override {
    const std::lock_guard lock(mutex_);
    return divided_[static_cast<size_t>(layer)];
  }

  int64_t count = 0;  // of divided experts

 private:
  const int devices_;
  const double share_;
  const uint64_t seed_;
  const bool divides_;
  DividedExpert divided_[8];
  mutable std::mutex mutex_;
};

/// Declares what the body does, and does nothing.
class SkippedBody final : public Body {
 public:
  explicit SkippedBody(const Body& as) : as_(as) {}
  std::vector<Port> ports(const TaskShape& s) const override { return as_.ports(s); }
  std::vector<BlockUse> blocks(const TaskShape& s) const override { return as_.blocks(s); }
  ScratchNeed scratch(const TaskShape& s, const OpSet& ops) const override {
    return as_.scratch(s, ops);
  }
  void run(const BodyContext&) const override {}

 private:
  const Body& as_;
};

Steps divided_steps(const ModelCase& model, int devices, DrawnDivisions& splits, uint64_t seed) {
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
  travelling.divides = true;
  travelling.spare = seed % 3 == 0 ? 0.0 : seed % 3 == 1 ? 0.4 : 1.0;
  travelling.ahead_bytes = seed % 2 == 0 ? 0 : 6000;
  steps.travelling = travelling;
  steps.recompute = seed % 5 < 2;
  steps.inputs_on_host = seed % 4 < 2;
  steps.group = devices == 1 && seed % 2 == 0 ? 4 : 2;
  steps.workers = 1 + static_cast<int>(seed % 3);
  steps.count = 1;
  return steps;
}

bool is_near(double a, double b, double relative) {
  return std::isfinite(a) && std::abs(a - b) <= relative * std::max(1.0, std::abs(b));
}

/// The root of the mean square of what differs, relative to that of what is expected.
double moments_apart(std::span<const std::byte> a, std::span<const std::byte> b) {
  REQUIRE(a.size() == b.size());
  double apart = 0, size = 0;
  for (size_t i = 0; i < a.size(); i += sizeof(float)) {
    float x, y;
    std::memcpy(&x, a.data() + i, sizeof(float));
    std::memcpy(&y, b.data() + i, sizeof(float));
    apart += std::pow(double{x} - y, 2);
    size += double{y} * y;
  }
  return std::sqrt(apart / size);
}

/// The second moments of the first step are the squares of the gradients.
void check_bounds(const Outcome& outcome, const Outcome& expected) {
  CHECK(is_near(outcome.loss, expected.loss, 1e-6));
  CHECK(is_near(outcome.aux_loss, expected.aux_loss, 1e-6));
  CHECK(is_near(outcome.norm, expected.norm, 1e-5));
  CHECK(moments_apart(outcome.moments, expected.moments) < 1e-4);
}

TEST_CASE("divided experts: losses, norms and gradients of one host, for every model") {
  size_t changed = 0, cases = 0;
  uint64_t seed = 1;
  for (const ModelCase& model : models()) {
    for (const double dropout : {0.0, 0.3}) {
      if (dropout > 0 && model.adapters.empty()) continue;
      const auto settings = [=](RunSettings& of) { of.lora_dropout = dropout; };
      Steps host(model.config);
      host.adapters = model.adapters;
      host.settings = settings;
      host.count = 1;
      const Outcome expected = host.run();
      for (const int devices : {1, 2}) {
        for (const double share : {0.0, 0.4, 0.4, 0.7}) {
          INFO(devices << " devices, share " << share << ", dropout " << dropout << ", seed "
                       << seed);
          DrawnDivisions splits(devices, share, seed);
          Steps steps = divided_steps(model, devices, splits, seed++);
          steps.settings = settings;
          const Outcome outcome = steps.run();
          check_bounds(outcome, expected);
          cases += splits.count > 0 ? 1 : 0;
          changed += outcome == expected ? 0 : 1;
        }
      }
    }
  }
  CHECK(cases >= 30);
  CHECK(2 * changed > cases);  // otherwise nothing was divided
}

TEST_CASE("divided experts: where the rule divides none, the bits of one host") {
  uint64_t seed = 1;
  for (const ModelCase& model : models()) {
    const Outcome expected = on_host(model);
    for (const int devices : {1, 2}) {
      DrawnDivisions splits(devices, 0.5, seed, false);
      Steps steps = divided_steps(model, devices, splits, seed++);
      steps.count = 2;
      CHECK(steps.run() == expected);
    }
  }
}

TEST_CASE("divided experts: any legal order and any workers give the same bits") {
  for (const uint64_t seed : {1, 2, 3, 5}) {
    for (const ModelCase& model : models()) {
      const int devices = 1 + static_cast<int>(seed % 2);
      INFO("seed " << seed);
      const auto outcome = [&](int workers, uint64_t order) {
        DrawnDivisions splits(devices, 0.4, seed);
        Steps steps = divided_steps(model, devices, splits, seed);
        steps.count = 2;
        steps.workers = workers;
        steps.travelling->spare = 1;  // an order may lease what it likes
        if (order > 0) {
          steps.options.poison = true;
          steps.options.order = random_order(steps.list(), 10 * seed + order);
        }
        const Outcome of = steps.run();
        CHECK(splits.count > 0);
        return of;
      };
      const Outcome expected = outcome(1, 0);
      CHECK(outcome(3, 0) == expected);
      CHECK(outcome(1, 1) == expected);
      CHECK(outcome(1, 2) == expected);
    }
  }
}

TEST_CASE("divided experts: what is left out of the device's columns is noticed") {
  const ModelCase model = models()[0];
  Steps host(model.config);
  host.count = 1;
  const Outcome expected = host.run();
  for (const TaskKind kind : {TaskKind::pack, TaskKind::divided, TaskKind::join}) {
    INFO(name_of(kind));
    const SkippedBody skipped(body_of(kind));
    const Body& was = replace_body(kind, skipped);
    DrawnDivisions splits(1, 0.4, 2);
    const Outcome outcome = divided_steps(model, 1, splits, 2).run();
    replace_body(kind, was);
    CHECK(splits.count > 0);
    CHECK_FALSE(moments_apart(outcome.moments, expected.moments) < 1e-4);
  }
}

}  // namespace
}  // namespace hearth::test
