// --policy gpipe-offload and mobius: all weights live on the host, devices compute.
#include <catch2/catch_test_macros.hpp>

#include "base/sanitized.h"
#include "support/has.h"
#include "train/same_bits.h"

namespace hearth::test {
namespace {

/// Runs and keeps what the last step moved.
struct Travelled {
  RecordingReporter reporter;
  ExitCode code = ExitCode::done;

  Travelled(SameBitsFixture& f, const TrainConfig& config) {
    static_cast<void>(f);
    unbind_thread();
    code = train(config, reporter);
  }
  const StepMetrics& last() const { return reporter.steps.back(); }
};

TrainConfig travelling(SameBitsFixture& f, const std::string& out, const std::string& policy,
                       const std::string& devices) {
  TrainConfig config = f.config_of({}, out);
  config.policy = policy;
  config.devices = devices;
  return config;
}

TEST_CASE("travelling: a plan needs slots for one task, and a device less than all weights") {
  SameBitsFixture f;
  const TrainConfig resident = travelling(f, "x", "", "virtual:mem=4096");
  const TrainConfig mobius = travelling(f, "x", "mobius", "virtual:mem=4096");
  const uint64_t all = f.devices_need(resident).front(), some = f.devices_need(mobius).front();
  CHECK(some < all);
  const TrainConfig fits = travelling(f, "fits", "mobius", "virtual:mem=" + std::to_string(some));
  const Travelled least(f, fits);
  CHECK(least.code == ExitCode::done);
  CHECK(least.last().peak_device_bytes.at("virtual:0") <= some);
  const Travelled ample(f, travelling(f, "ample", "mobius", "virtual"));
  CHECK(f.root("fits") == f.root("ample"));
  // What does not fit in slots is loaded again within a step.
  const char* in = "host->virtual:0";
  CHECK(least.last().bytes.at(in) > ample.last().bytes.at(in));
}

// The second device holds all layers: the embedding, which is tied, is computed with the head.
TEST_CASE("travelling: what a refusal names is accepted, and no more than the run needs") {
  if (kSanitized) SKIP("plans are searched for a minute");
  SameBitsFixture f;
  TrainConfig config = f.config_of({"tied"}, "x");
  config.policy = "gpipe-offload";
  config.grad_accum = 1;
  const auto plan_with = [&](uint64_t bytes) {
    config.devices = "virtual:mem=4096,virtual:mem=" + std::to_string(bytes) + ",host";
    return plan_of(config);
  };
  const PlanReport small = plan_with(4096);
  REQUIRE_FALSE(small.fits);
  const uint64_t needed = small.json.find("needed_bytes")->as_uint();
  INFO(small.refusal);
  CHECK(plan_with(needed).fits);
  CHECK_FALSE(plan_with(needed * 97 / 100).fits);  // recompute needs less, and counts
  const PlanReport short_of_it = plan_with(needed * 95 / 100);
  INFO(short_of_it.refusal);
  CHECK_FALSE(short_of_it.fits);
  CHECK_FALSE(has(short_of_it.refusal, "host,host"));  // the host is there already
}

TEST_CASE("travelling: gradients come home once for each load, and both policies move the same") {
  SameBitsFixture f;
  const Travelled on_demand(f, travelling(f, "demand", "gpipe-offload", "virtual"));
  const Travelled ahead(f, travelling(f, "ahead", "mobius", "virtual"));
  CHECK(f.root("demand") == f.root("ahead"));
  CHECK(on_demand.last().bytes == ahead.last().bytes);
  // All fits: every weight crosses once in, every gradient once out.
  uint64_t weights = 0;
  const auto opened = open_model(f.config_of({}, "y"));
  for (const Tensor& t : opened->base.tensors()) weights += 4 * static_cast<uint64_t>(t.size());
  for (const char* link : {"host->virtual:0", "virtual:0->host"}) {
    INFO(link);
    CHECK(ahead.last().bytes.at(link) >= weights);
    CHECK(ahead.last().bytes.at(link) < weights + weights / 4);
  }
}

TEST_CASE("travelling: a run is stopped under one policy and goes on under another") {
  SameBitsFixture f;
  const TrainConfig whole = f.config_of({"qwen2_moe", 0.2}, "whole");
  REQUIRE(f.run(whole) == ExitCode::done);
  TrainConfig parts = f.config_of({"qwen2_moe", 0.2}, "parts");
  parts.allow_change = {"policy", "devices"};
  int64_t step = 0;
  for (const auto& [policy, devices] :
       {std::pair("mobius", "virtual"), std::pair("gpipe-offload", "2xvirtual")}) {
    parts.policy = policy;
    parts.devices = devices;
    parts.recorded = whole.recorded;
    parts.recorded.push_back({"policy", policy, false});
    parts.recorded.push_back({"devices", devices, false});
    REQUIRE(f.run_until(parts, ++step) == ExitCode::stopped);
  }
  parts.policy.clear();
  parts.devices = "host";
  parts.recorded = whole.recorded;
  REQUIRE(f.run(parts) == ExitCode::done);
  CHECK(f.root("parts") == f.root("whole"));
  CHECK(f.result("parts") == f.result("whole"));
}

TEST_CASE("travelling: evaluation and generation compute with leased weights, too") {
  SameBitsFixture f;
  GenerateConfig config;
  config.model = f.dir / "qwen2_moe";
  config.data = {f.dir / "rows.jsonl"};
  config.seq_len = 64;
  config.threads = 2;
  config.data_cache = 0;
  config.prompt = "What is 3?";
  config.max_new_tokens = 8;
  const auto results = [&] {
    unbind_thread();
    RecordingReporter reporter;
    std::string text = evaluate(config, reporter).dump();
    unbind_thread();
    return text + generate(config, reporter, [](const std::string&) {}).text;
  };
  const std::string on_host = results();
  REQUIRE(on_host.find("loss") != std::string::npos);
  config.devices = "virtual";
  for (const char* policy : {"gpipe-offload", "mobius"}) {
    config.policy = policy;
    CHECK(results() == on_host);
  }
}

TEST_CASE("travelling: frozen weights that fit cross the link once in a run") {
  SameBitsFixture f;
  for (const char* policy : {"gpipe-offload", "mobius"}) {
    TrainConfig config = f.config_of({"qwen2_moe", 0.0}, policy);
    config.policy = policy;
    config.devices = "virtual";
    const Travelled run(f, config);
    REQUIRE(run.code == ExitCode::done);
    std::vector<uint64_t> in;
    for (const StepMetrics& m : run.reporter.steps) in.push_back(m.bytes.at("host->virtual:0"));
    for (const size_t later : {1, 2}) {
      CHECK(2 * in[later] < in[0]);
      CHECK(in[later] > 0);  // the adapters
    }
    CHECK(f.root(policy) == f.on_host({"qwen2_moe", 0.0}).root);
  }
}

TEST_CASE("travelling: metrics say how much of each layer was on devices") {
  SameBitsFixture f;
  const TrainConfig host = f.config_of({}, "host");
  CHECK(Travelled(f, host).last().residency.empty());
  CHECK(Travelled(f, travelling(f, "resident", "", "virtual")).last().residency.empty());
  double ample = 0, least = 0;
  for (const bool small : {false, true}) {
    TrainConfig config = f.config_of({"qwen3_moe", 0.0}, small ? "small" : "ample");
    config.policy = "gpipe-offload";
    config.devices = "virtual:mem=4096";
    const uint64_t needed = f.devices_need(config).front();
    config.devices = small ? "virtual:mem=" + std::to_string(needed) : "virtual";
    const Travelled run(f, config);
    REQUIRE(run.code == ExitCode::done);
    const std::vector<double>& shares = run.last().residency;
    REQUIRE(shares.size() == 3);
    for (const double share : shares) {
      CHECK(share >= 0);
      CHECK(share <= 1);
      (small ? least : ample) += share / 3;
    }
    // The frozen weights stay from step to step, where they fit.
    if (!small) CHECK(run.reporter.steps[2].residency[1] > 0.8);
  }
  CHECK(least < 0.8 * ample);
}

TEST_CASE("travelling: needs a device") {
  SameBitsFixture f;
  const Raised hosts = raised_by([&] { f.run(travelling(f, "x", "mobius", "host")); });
  CHECK(hosts.code == ExitCode::usage);
  CHECK(hosts.says("--policy mobius"));
}

}  // namespace
}  // namespace hearth::test
