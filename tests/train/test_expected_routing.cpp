// What predictions take the popularity of experts to be: budget/expected_routing.h.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <numeric>

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

TEST_CASE("expected routing: choices of a micro-batch in the shares of the counts") {
  const ModelSpec spec = spec_of(2, 4);
  const std::vector<BatchWork> batches = {full_batch(50, 10), full_batch(7, 7)};
  const ExpertCounts counts = {{600, 300, 100, 0}, {1, 1, 1, 0}};
  const auto routing = routing_like(counts, spec, batches, "a sample");
  REQUIRE(routing != nullptr);
  CHECK(routing->basis == "a sample");
  CHECK(routing->steps == 2);
  CHECK(list_of(routing->choices(0, 0, 0)) == std::vector<int64_t>{60, 30, 10, 0});
  // Whole choices by the largest remainder: 8.4, 4.2, 1.4 of 14.
  CHECK(list_of(routing->choices(1, 0, 1)) == std::vector<int64_t>{9, 4, 1, 0});
  // 33.3 each of 100, of equals the lower number first.
  CHECK(list_of(routing->choices(0, 1, 0)) == std::vector<int64_t>{34, 33, 33, 0});
}

TEST_CASE("expected routing: without counts all are equally popular, and nothing is nothing") {
  const ModelSpec spec = spec_of(1, 4);
  const std::vector<BatchWork> batches = {full_batch(10, 10)};
  CHECK(routing_like({}, spec, batches, "x") == nullptr);
  for (const ExpertCounts& counts : {ExpertCounts{{}}, ExpertCounts{{0, 0, 0, 0}}}) {
    const auto routing = routing_like(counts, spec, batches, "x");
    CHECK(list_of(routing->choices(0, 0, 0)) == std::vector<int64_t>{5, 5, 5, 5});
  }
}

/// The layers' counts add up to the choices of a micro-batch, whatever the shares.
TEST_CASE("expected routing: every choice is somewhere") {
  const ModelSpec spec = spec_of(1, 7);
  for (int64_t tokens = 1; tokens < 40; ++tokens) {
    const std::vector<BatchWork> batches = {full_batch(tokens, tokens)};
    const auto routing = routing_like({{5, 3, 11, 0.5, 2, 17, 1e-3}}, spec, batches, "x");
    const auto of = routing->choices(0, 0, 0);
    CHECK(std::accumulate(of.begin(), of.end(), int64_t{0}) == 2 * tokens);
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
