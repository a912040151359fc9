// Plans: from config.json alone, sizes by arithmetic, refusals that name what fits, and what a run
// measured of its plan.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "base/glob.h"
#include "base/system.h"
#include "budget/placed_model.h"
#include "checkpoint/description.h"
#include "support/published_configs.h"
#include "train/training_data.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

const Json& place_of(const Json& plan) { return plan.find("memory")->as_array()[0]; }

const Json* line_of(const Json& plan, const std::string& name) {
  for (const Json& line : place_of(plan).find("lines")->as_array()) {
    if (line.find("name")->as_string() == name) return &line;
  }
  return nullptr;
}

double bytes_of(const Json& plan, const std::string& name) {
  const Json* line = line_of(plan, name);
  return line ? line->find("bytes")->as_double() : 0;
}

/// A directory that holds config.json alone.
std::string config_directory(const TemporaryDirectory& dir, const PublishedModel& model) {
  const std::string directory = dir / model.name;
  make_directory(directory);
  write_file_atomically(directory + "/config.json", model.config);
  return directory;
}

TrainConfig published_plan(const std::string& directory) {
  TrainConfig config;
  config.model = directory;
  config.seq_len = 64;
  config.grad_accum = 1;
  config.compute = ComputeChoice::f32;
  config.threads = 2;
  config.cpu_memory = uint64_t{1} << 41;
  return config;
}

bool is_supported(const PublishedModel& model) {
  const std::string type = parse_json(model.config, model.name).find("model_type")->as_string();
  return std::any_of(families().begin(), families().end(),
                     [&](const Family* family) { return family->model_type() == type; });
}

/// Within the padding between tensors.
bool close_to(double bytes, double expected) {
  return bytes >= expected && bytes <= expected * 1.0001 + 4096;
}

TEST_CASE("plan: published sizes from config.json alone, by arithmetic") {
  register_all_op_sets();
  TemporaryDirectory dir;
  for (const PublishedModel& model : {kQwen3Moe30B, kOlmoe7B, kMixtral8x7B, kQwen2Moe14B}) {
    if (!is_supported(model)) continue;
    INFO(model.name);
    TrainConfig config = published_plan(config_directory(dir, model));
    const auto parameters = static_cast<double>(model.parameters);
    const PlanReport full = plan_of(config);
    CHECK(full.fits);
    for (const char* line : {"master weights", "gradients", "first moments", "second moments"}) {
      INFO(line);
      CHECK(close_to(bytes_of(full.json, line), 4 * parameters));
    }
    CHECK(line_of(full.json, "weights (stored type)") == nullptr);
    CHECK(place_of(full.json).find("peak_bytes")->as_double() > 16 * parameters);
    double sum = 0;
    for (const Json& line : place_of(full.json).find("lines")->as_array()) {
      sum += line.find("bytes")->as_double();
      const std::string& basis = line.find("basis")->as_string();
      CHECK((basis.starts_with("derived: ") || basis.starts_with("measured: ") ||
             basis.starts_with("data: ") || basis.starts_with("policy: ")));
    }
    CHECK(sum == place_of(full.json).find("peak_bytes")->as_double());

    // Frozen weights stay as stored: bfloat16 says config.json.
    const Json spec = parse_json(model.config, model.name);
    const Family& family = family_of(spec, model.name);
    const ParameterTable table = family.make_table(family.read_config(spec, model.name));
    double experts = 0;
    for (const Tensor& t : table.tensors()) {
      if (glob_matches("*.experts.*", t.name)) experts += static_cast<double>(t.size());
    }
    config.freeze = {"*.experts.*"};
    const PlacedModel frozen =  // which measures no rates
        place_model(trained_model(open_model(config, Weights::may_be_absent), config),
                    training_request(config, nullptr));
    int found = 0;
    for (const MemoryLine& line : frozen.plan.host().lines) {
      const auto bytes = static_cast<double>(line.bytes);
      if (line.name == "gradients") {
        ++found;
        CHECK(close_to(bytes, 4 * (parameters - experts)));
      } else if (line.name == "weights (stored type)") {
        ++found;
        CHECK(close_to(bytes, 2 * experts));
        CHECK(line.basis.find("config.json's dtype") != std::string::npos);
      }
    }
    CHECK(found == 2);
  }
}

TEST_CASE("plan: an index without its shards tells the stored types") {
  register_all_op_sets();
  TemporaryDirectory dir;
  const std::string directory = config_directory(dir, kQwen3Moe30B);
  const auto index = [&](double bytes_each) {
    write_file_atomically(
        directory + "/model.safetensors.index.json",
        R"({"metadata":{"total_size":)" +
            std::to_string(
                static_cast<int64_t>(bytes_each * static_cast<double>(kQwen3Moe30B.parameters))) +
            R"(},"weight_map":{"lm_head.weight":"model-00001-of-00001.safetensors"}})");
  };
  TrainConfig config = published_plan(directory);
  config.freeze = {"*.experts.*"};
  config.trainable = {"lm_head.weight"};
  index(4);
  CHECK(weights_are_absent(directory));
  const Json four = plan_of(config).json;
  CHECK(line_of(four, "weights (stored type)")->find("basis")->as_string().find("the index") !=
        std::string::npos);
  index(2);
  const Json two = plan_of(config).json;
  CHECK(bytes_of(four, "weights (stored type)") == 2 * bytes_of(two, "weights (stored type)"));
  // A run needs the weights, a plan of damaged ones says so as a run does.
  config.out = dir / "run";
  RecordingReporter reporter;
  config.data = {dir / "none.jsonl"};
  CHECK(raised_by([&] { train(config, reporter); }).code == ExitCode::input);
}

TEST_CASE("plan: weights that are there are read from their headers, data by their lengths") {
  TrainingFixture f;
  TrainConfig config = f.config("x");
  config.freeze = {"*.experts.*"};
  const Json with = plan_of(config).json;
  CHECK(line_of(with, "weights (stored type)")->find("basis")->as_string().find("headers") !=
        std::string::npos);
  CHECK(line_of(with, "data") != nullptr);
  CHECK(with.find("steps")->as_int() == 8);
  CHECK(with.find("time_basis")->as_string() == "mean of the data");
  config.data.clear();
  config.steps.reset();
  const Json without = plan_of(config).json;
  CHECK(line_of(without, "data") == nullptr);
  CHECK(without.find("steps")->is_null());
  CHECK(without.find("tokens_per_micro_batch")->as_int() == config.seq_len * config.micro_batch);
  CHECK(without.find("tokens_per_step")->as_double() ==
        static_cast<double>(config.seq_len * config.micro_batch * config.grad_accum));
  for (const Json* plan : {&with, &without}) {
    CHECK(plan->find("time_s")->as_double() > plan->find("bound_s")->as_double());
    double share = 0;
    for (const auto& [name, seconds] : plan->find("phases")->as_object()) {
      share += seconds.as_double();
    }
    CHECK(std::abs(share / plan->find("time_s")->as_double() - 1) < 1e-9);
  }
}

TEST_CASE("plan: the text sums up tasks that are alike, and can have them all") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  config.data.clear();
  const std::string summary = plan_of(config).text;
  const PlanReport all = plan_of(config, PlanDetail::tasks);
  const std::string kinds =
      all.text.substr(0, all.text.find("attention forward layer 1 micro-batch"));
  INFO(kinds);
  // Three micro-batches; layer 0 is dense, so what it reads and writes differs. Experts of the host
  // compute the group at once.
  CHECK(kinds.find("      3  attention forward   layer 1          residual ") != std::string::npos);
  CHECK(kinds.find("      1  experts backward    layer 1          ") != std::string::npos);
  CHECK(kinds.find("      1  norm forward") != std::string::npos);
  CHECK(summary.find("attention forward") == std::string::npos);
  CHECK(all.text.find("attention forward layer 1 micro-batch 2") != std::string::npos);
  const auto lines = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
  };
  CHECK(lines(summary) < 50);
  CHECK(lines(all.text) > lines(summary) + all.json.find("tasks")->as_int() / 2);
}

TEST_CASE("plan: a run grades every line of its plan") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  config.eval_data = config.data;
  config.eval_every.steps = 4;
  RecordingReporter reporter;
  REQUIRE(train(config, reporter) == ExitCode::done);
  const Json plan = parse_json(read_file(f.dir / "run/plan.json"), "plan.json");
  for (const Json& line : place_of(plan).find("lines")->as_array()) {
    INFO(line.dump());
    REQUIRE(line.find("measured") != nullptr);
    const std::string& name = line.find("name")->as_string();
    if (name.ends_with("weights") || name.ends_with("moments") || name == "gradients" ||
        name.starts_with("activations") || name.starts_with("scratch")) {
      CHECK(line.find("measured")->as_int() == line.find("bytes")->as_int());
    }
  }
  CHECK(place_of(plan).find("measured_peak_bytes")->as_int() > 0);
  CHECK(plan.find("measured_time_s")->as_double() > 0);
  CHECK(plan.find("measured_steps")->as_int() == 8);
  for (const StepMetrics& m : reporter.steps) {
    CHECK(m.bound_pct > 0);
    CHECK(m.busy.at("cpu") > 0);
    CHECK(m.busy.at("cpu") <= config.threads * m.time_s * 1.01);
    CHECK(m.busy.at("io") >= 0);
    CHECK(m.busy.contains(m.limit));
  }
}

}  // namespace
}  // namespace hearth::test
