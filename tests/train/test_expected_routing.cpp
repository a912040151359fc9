// What predictions take the popularity of experts to be: budget/expected_routing.h.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <numeric>
#include <set>

#include "budget/expected_routing.h"
#include "state/saved_state.h"
#include "train/aptmoe_runs.h"

namespace hearth::test {
namespace {

using Catch::Approx;

ModelSpec spec_of(int64_t layers, int64_t experts) {
  ModelSpec spec;
  spec.layers = layers;
  spec.experts = experts;
  spec.experts_per_token = 2;
  spec.moe.assign(static_cast<size_t>(layers), true);
  return spec;
}

std::vector<int64_t> list_of(std::span<const int64_t> counts) {
  return {counts.begin(), counts.end()};
}

/// The mean of the choices of an expert over many steps and micro-batches.
double mean_of(const ExpectedRouting& routing, int32_t layer, size_t expert, int32_t count) {
  double sum = 0;
  for (int64_t step = 0; step < routing.steps; ++step) {
    for (int32_t m = 0; m < count; ++m) {
      sum += static_cast<double>(routing.choices(step, layer, m)[expert]);
    }
  }
  return sum / static_cast<double>(routing.steps * count);
}

TEST_CASE("expected routing: choices of a micro-batch in the shares of the counts") {
  const ModelSpec spec = spec_of(2, 4);
  const std::vector<BatchWork> batches(16, full_batch(50, 10));
  const ExpertCounts counts = {{450, 300, 250, 0}, {1, 1, 1, 0}};
  const auto routing = routing_like(counts, spec, batches, "a sample");
  REQUIRE(routing != nullptr);
  CHECK(routing->basis == "a sample");
  CHECK(routing->steps == 3);
  // 48 draws; an expert that a token takes with probability q deviates by sqrt(50 q (1 - q)).
  const std::vector<std::vector<double>> expected = {{45, 30, 25, 0}, {33.3, 33.3, 33.3, 0}};
  for (int32_t layer = 0; layer < 2; ++layer) {
    for (size_t e = 0; e < 4; ++e) {
      CHECK(mean_of(*routing, layer, e, 16) ==
            Approx(expected[static_cast<size_t>(layer)][e]).margin(e == 3 ? 0 : 2.5));
    }
  }
  std::set<std::vector<int64_t>> different, steps;
  for (int32_t m = 0; m < 16; ++m) different.insert(list_of(routing->choices(1, 0, m)));
  for (int64_t step = 0; step < 3; ++step) steps.insert(list_of(routing->choices(step, 0, 7)));
  CHECK(different.size() > 5);
  CHECK(steps.size() > 1);
  const auto again = routing_like(counts, spec, batches, "the same");
  CHECK(list_of(routing->choices(2, 1, 5)) == list_of(again->choices(2, 1, 5)));
}

TEST_CASE("expected routing: many tokens keep the shares, few do not") {
  const ModelSpec spec = spec_of(1, 4);
  const auto deviation =
      [&](int64_t tokens) {  // of the first expert's choices from half of the tokens
        const std::vector<BatchWork> batches(16, full_batch(tokens, tokens));
        const auto routing = routing_like({{1, 1, 1, 1}}, spec, batches, "x");
        double most = 0;
        for (int32_t m = 0; m < 16; ++m) {
          const auto of = static_cast<double>(routing->choices(1, 0, m)[0]);
          most = std::max(most, std::abs(of / (0.5 * static_cast<double>(tokens)) - 1));
        }
        return most;
      };
  CHECK(deviation(16) > 0.2);
  CHECK(deviation(1 << 20) < 0.01);
}

TEST_CASE("expected routing: without counts all are equally popular, and nothing is nothing") {
  const ModelSpec spec = spec_of(1, 4);
  const std::vector<BatchWork> batches(16, full_batch(10, 10));
  CHECK(routing_like({}, spec, batches, "x") == nullptr);
  for (const ExpertCounts& counts : {ExpertCounts{{}}, ExpertCounts{{0, 0, 0, 0}}}) {
    const auto routing = routing_like(counts, spec, batches, "x");
    for (size_t e = 0; e < 4; ++e) CHECK(mean_of(*routing, 0, e, 16) == Approx(5).margin(0.8));
  }
}

/// The layers' counts add up to the choices of a micro-batch, whatever the shares.
TEST_CASE("expected routing: every choice is somewhere") {
  const ModelSpec spec = spec_of(1, 7);
  for (int64_t tokens = 1; tokens < 40; ++tokens) {
    const std::vector<BatchWork> batches = {full_batch(tokens, tokens), full_batch(1, 1)};
    const auto routing = routing_like({{5, 3, 11, 0.5, 2, 17, 1e-3}}, spec, batches, "x");
    for (int32_t m = 0; m < 2; ++m) {
      const auto of = routing->choices(0, 0, m);
      CHECK(std::accumulate(of.begin(), of.end(), int64_t{0}) == (m == 0 ? 2 * tokens : 2));
      CHECK(std::ranges::all_of(of, [](int64_t n) { return n >= 0; }));
    }
  }
}

struct SampledFixture : SameBitsFixture {
  SampledFixture() { assumed.reset(); }

  TrainConfig config_on(const std::string& out, const std::string& policy) const {
    TrainConfig config = config_of({"olmoe", {}}, out);
    config.recompute = Recompute::none;
    const RunsOn on{.devices = 1, .host = "host", .hot = 2, .by_times = true};
    config.devices = with_costs(list_of(config, on));
    config.policy = policy == "auto" ? "" : policy;
    config.recorded.push_back({"policy", policy, false});
    return config;
  }
};

TEST_CASE("expected routing: a plan without a sample says so, a run that counted one uses it") {
  SampledFixture f;
  f.host_call_s = 2e-7;
  f.link_bytes_per_s = 2e9;
  const TrainConfig config = f.config_on("run", "auto");
  unbind_thread();
  const PlanReport plan = plan_of(config);
  CHECK(plan.json.find("expert_popularity")->as_string() == kEqualPopularity);
  CHECK(plan.text.find(kEqualPopularity) != std::string::npos);
  CHECK(plan.json.find("policy_choice")->find("why")->as_string().ends_with(kEqualPopularity));
  REQUIRE(f.run_until(config, 1) == ExitCode::stopped);
  const auto of_run = [&] { return parse_json(read_file(config.out + "/plan.json"), "plan.json"); };
  const std::string sampled = of_run().find("expert_popularity")->as_string();
  CHECK(sampled.starts_with("experts as popular as in a sample of "));
  CHECK(of_run().find("policy_choice")->find("why")->as_string().ends_with(sampled));
  // A resume counts nothing, and plans as before.
  const Json before = of_run();
  REQUIRE(f.run(config) == ExitCode::done);
  CHECK(of_run().find("expert_popularity")->as_string() == sampled);
  CHECK(of_run().find("time_s")->as_double() == Approx(before.find("time_s")->as_double()));
  CHECK(of_run().find("stages")->dump() == before.find("stages")->dump());
}

}  // namespace
}  // namespace hearth::test
