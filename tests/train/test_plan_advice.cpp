// Properties of plans over many budgets: more memory never stops a run from fitting, and what a
// refusal names is accepted.
#include <catch2/catch_test_macros.hpp>

#include "base/sanitized.h"
#include "budget/needed_memory.h"
#include "budget/placed_model.h"
#include "budget/plan_changes.h"
#include "budget/plan_fit.h"
#include "support/published_configs.h"
#include "support/spelled_as_flags.h"
#include "train/planned_run.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

struct Case {
  const char* devices;
  Method method;
};
constexpr Case kCases[] = {{"host", Method::full},
                           {"host", Method::lora},
                           {"virtual:mem=1Gi,host", Method::full},
                           {"virtual:mem=1Gi,host", Method::lora}};

/// A run whose activations take tens of MiB, so that groups and cuts matter.
TrainConfig config_of(const TrainingFixture& f, const Case& c) {
  TrainConfig config = f.config("unused");
  config.data.clear();
  config.devices = c.devices;
  config.method = c.method;
  config.seq_len = 2048;
  config.micro_batch = 2;
  config.grad_accum = 8;
  return config;
}

/// The run for a process of a fixed size, so that no measurement moves what fits.
struct Subject {
  TrainConfig config;
  std::shared_ptr<const OpenedModel> opened;
  PlacedModel model;
  PlanRequest request;

  explicit Subject(TrainConfig of)
      : config(std::move(of)),
        opened(open_model(config, Weights::may_be_absent)),
        model(place_model(trained_model(opened, config), training_request(config, nullptr))),
        request(training_request(config, nullptr)) {
    request.shortest = shortest_useful(config, nullptr);
  }
  PlanSubject with(uint64_t host) const {
    PlanSubject subject = subject_of(model);
    subject.process = {20 * kMiB, 0, 0};
    subject.opening_bytes = 0;
    subject.host_budget().bytes = host;
    return subject;
  }
};

std::string value_of(const std::string& options, const std::string& name) {
  size_t at = options.find(name + " ");
  if (at == std::string::npos) return "";
  at += name.size() + 1;
  std::string value = options.substr(at, options.find(' ', at) - at);
  if (value.size() > 1 && value.front() == '\'') value = value.substr(1, value.size() - 2);
  return value;
}

/// The options of a change in place of the run's own.
TrainConfig changed(TrainConfig config, const std::string& options) {
  const auto number = [&](const std::string& name, auto& member) {
    const std::string value = value_of(options, name);
    if (!value.empty()) member = std::stoll(value);
  };
  number("--seq-len", config.seq_len);
  number("--micro-batch", config.micro_batch);
  number("--grad-accum", config.grad_accum);
  number("--lora-r", config.lora_rank);
  const std::string alpha = value_of(options, "--lora-alpha");
  if (!alpha.empty()) config.lora_alpha = std::stod(alpha);
  number("--expert-r", config.expert_rank);
  const std::string experts = value_of(options, "--experts");
  if (!experts.empty()) config.experts_top = std::stod(experts.substr(4));
  const std::string freeze = value_of(options, "--freeze");
  if (!freeze.empty()) config.freeze = {freeze};
  const std::string trainable = value_of(options, "--trainable");
  if (!trainable.empty()) config.trainable = {trainable};
  const std::string targets = value_of(options, "--lora-targets");
  if (!targets.empty()) config.lora_targets = {targets};
  if (!value_of(options, "--method").empty()) config.method = Method::lora;
  if (!value_of(options, "--recompute").empty()) config.recompute = Recompute::blocks;
  if (!value_of(options, "--compute-dtype").empty()) config.compute = ComputeChoice::f32;
  const std::string devices = value_of(options, "--devices");
  if (!devices.empty()) config.devices = devices;
  return config;
}

double scale_of(const TrainConfig& config) {
  return config.lora_alpha / static_cast<double>(config.lora_rank);
}

bool fits(const Subject& s, uint64_t budget) { return make_plan(s.with(budget), s.request).fits(); }

TEST_CASE("plan advice: more memory never stops a run from fitting") {
  const TrainingFixture f;
  for (const Case& c : kCases) {
    INFO(c.devices << (c.method == Method::lora ? " lora" : " full"));
    const Subject s(config_of(f, c));
    const uint64_t needed = needed_memory(s.with(0), s.request)[kHostPlace];
    CHECK(fits(s, needed));
    int64_t group = 0;
    for (uint64_t budget = needed; budget < needed + 320 * kMiB;
         budget += (kSanitized ? 40 : 5) * kMiB) {
      INFO(budget / kMiB << " MiB, at least " << needed / kMiB);
      const Plan plan = make_plan(s.with(budget), s.request);
      REQUIRE(plan.fits());
      if (plan.train->recompute) continue;
      CHECK(plan.train->group >= group);
      group = plan.train->group;
    }
    CHECK(group > 1);
  }
}

TEST_CASE("plan advice: every change is accepted in place of the options, and fits") {
  const SpelledAsFlags flags;
  const TrainingFixture f;
  for (const Case& c : kCases) {
    const Subject s(config_of(f, c));
    const uint64_t needed = needed_memory(s.with(0), s.request)[kHostPlace];
    int advised = 0;
    const uint64_t less = kSanitized ? 16 * kMiB : 2 * kMiB;
    for (uint64_t budget = needed - 2 * kMiB; budget > 36 * kMiB; budget -= less) {
      const auto changes = changes_that_fit(s.opened, s.with(budget), s.request, s.config);
      if (changes.empty()) break;
      ++advised;
      const std::string& options = changes.front().options;
      INFO(c.devices << ", " << budget / kMiB << " MiB: " << options);
      const Subject then(changed(s.config, options));
      CHECK(fits(then, budget));
      CHECK(then.config.seq_len >= 64);
      CHECK(scale_of(then.config) == scale_of(s.config));
    }
    CHECK(advised > (kSanitized ? 0 : 2));
  }
}

/// A directory with the config.json of Qwen3-30B-A3B alone.
std::string config_of_30b(const TemporaryDirectory& dir) {
  make_directory(dir / "30b");
  write_file_atomically(dir / "30b/config.json", kQwen3Moe30B.config);
  return dir / "30b";
}

TEST_CASE("plan advice: LoRA on a model of 30 B parameters") {
  if (kSanitized) SKIP("plans of thousands of blocks, for minutes");
  const SpelledAsFlags flags;
  register_all_op_sets();
  const TemporaryDirectory dir;
  TrainConfig config;
  config.model = config_of_30b(dir);
  config.method = Method::lora;
  config.threads = 2;
  config.devices = "host";
  const auto advice = [&](const TrainConfig& of) {
    const Subject s(of);
    const auto changes =
        changes_that_fit(s.opened, s.with(uint64_t{64} * 1000000000), s.request, s.config);
    REQUIRE_FALSE(changes.empty());
    const std::string options = changes.front().options;
    CHECK(fits(Subject(changed(of, options)), uint64_t{64} * 1000000000));
    return options;
  };
  const std::string plain = advice(config);
  INFO(plain);
  CHECK(plain.find("--") == 0);
  config.experts_top = 25;
  const std::string chosen = advice(config);
  INFO(chosen);
  CHECK(chosen.find("--freeze") == std::string::npos);  // which leaves no expert to choose
  config.experts_top = 0;
  config.method = Method::full;
  CHECK(advice(config).find("--method lora") != std::string::npos);
}

TEST_CASE("plan advice: a remedy keeps the rest of --devices") {
  const TrainingFixture f;
  const auto remedy = [&](const std::string& devices) {
    TrainConfig config = f.config("unused");
    config.devices = devices;
    const auto opened = open_model(config);
    return opened->devices.places.back().budget.raised_to("13M");
  };
  CHECK(remedy("virtual:mem=2M,host") == "--devices virtual:mem=13M,host");
  CHECK(remedy("virtual:latency=10us/mem=2M") == "--devices virtual:latency=10us/mem=13M");
  CHECK(remedy("host,virtual:mem=2M/latency=10us") ==
        "--devices host,virtual:mem=13M/latency=10us");
  CHECK(remedy("virtual,host") == "--devices virtual:mem=13M,host");
  CHECK(remedy("host") == "--cpu-memory 13M");
}

}  // namespace
}  // namespace hearth::test
