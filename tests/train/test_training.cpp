// Whole runs: the loss falls, nothing depends on threads, an interrupted run ends with the bits of
// an uninterrupted one, and a resume refuses what it must.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "base/sanitized.h"
#include "support/stored_tensors.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

TEST_CASE("training: the loss falls and the result is a checkpoint") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  config.steps = 30;
  RecordingReporter reporter;
  REQUIRE(train(config, reporter) == ExitCode::done);
  REQUIRE(reporter.steps.size() == 30);
  CHECK(reporter.steps.front().lr == 0);
  CHECK(reporter.steps.back().loss < 0.75 * reporter.steps.front().loss);
  CHECK(reporter.steps.back().tokens > reporter.steps.back().trained_tokens);
  CHECK_NOTHROW(Checkpoint(f.dir / "run/model"));
  CHECK(f.lines("run/metrics.jsonl").size() == 30);
}

TEST_CASE("training: the router's z-loss falls where it has a coefficient") {
  TrainingFixture f;
  const auto last = [&](const std::string& out, double coefficient) {
    TrainConfig config = f.config(out);
    config.router_z_loss = coefficient;
    RecordingReporter reporter;
    REQUIRE(train(config, reporter) == ExitCode::done);
    return reporter.steps.back().z_loss;
  };
  CHECK(!last("none", 0).has_value());
  CHECK(f.lines("none/metrics.jsonl")[0].find("z_loss") == std::string::npos);
  const auto little = last("little", 1e-12), much = last("much", 10);
  REQUIRE((little && much));
  CHECK(*much < 0.9 * *little);
  CHECK(f.lines("much/metrics.jsonl")[0].find("\"z_loss\": ") != std::string::npos);
}

TEST_CASE("training: threads change no bit") {
  TrainingFixture f;
  REQUIRE(f.run(f.config("a")) == ExitCode::done);
  for (const int threads : {1, 3, 5}) {
    if (kSanitized && threads != 3) continue;
    TrainConfig config = f.config("b" + std::to_string(threads));
    config.threads = threads;
    REQUIRE(f.run(config) == ExitCode::done);
    CHECK(f.root("b" + std::to_string(threads)) == f.root("a"));
  }
}

TEST_CASE("training: a run stopped after any step ends with the same bits") {
  TrainingFixture f;
  REQUIRE(f.run(f.config("whole")) == ExitCode::done);
  for (int64_t step = 1; step < 8; step += kSanitized ? 3 : 1) {
    const std::string out = "stopped" + std::to_string(step);
    REQUIRE(f.run_until(f.config(out), step) == ExitCode::stopped);
    CHECK(f.root(out).starts_with(std::to_string(step) + " "));
    REQUIRE(f.run(f.config(out)) == ExitCode::done);
    CHECK(f.root(out) == f.root("whole"));
    CHECK(f.result(out) == f.result("whole"));
  }
}

TEST_CASE("training: a request to stop that is sent twice at once is one request") {
  TrainingFixture f;
  RecordingReporter reporter;
  reporter.on_step = [](const StepMetrics& m) {
    if (m.step != 3) return;
    std::raise(SIGTERM);
    std::raise(SIGTERM);
  };
  CHECK(train(f.config("run"), reporter) == ExitCode::stopped);
  CHECK(f.root("run").starts_with("3 "));
}

TEST_CASE("training: a run stopped at every step ends with the same bits") {
  TrainingFixture f;
  REQUIRE(f.run(f.config("whole")) == ExitCode::done);
  for (int64_t step = 1; step < 8; step += kSanitized ? 2 : 1) {
    REQUIRE(f.run_until(f.config("often"), step) == ExitCode::stopped);
  }
  REQUIRE(f.run(f.config("often")) == ExitCode::done);
  CHECK(f.root("often") == f.root("whole"));
}

TEST_CASE("training: a resume without the moments would be seen") {
  // The control of the tests above: a state that lacks a component does not load.
  TrainingFixture f;
  REQUIRE(f.run_until(f.config("run"), 4) == ExitCode::stopped);
  remove_file(f.dir / "run/state/step-00000004/moment1.safetensors");
  CHECK(raised_by([&] { f.run(f.config("run")); }).code == ExitCode::storage);
}

TEST_CASE("training: bf16 compute resumes to the same bits") {
  TrainingFixture f;
  TrainConfig config = f.config("whole");
  config.compute = ComputeChoice::bf16;
  REQUIRE(f.run(config) == ExitCode::done);
  config.out = f.dir / "parts";
  REQUIRE(f.run_until(config, 3) == ExitCode::stopped);
  REQUIRE(f.run(config) == ExitCode::done);
  CHECK(f.root("parts") == f.root("whole"));
}

TEST_CASE("training: saves every N steps and keeps the newest") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  config.save_every.steps = 2;
  config.keep = 3;
  REQUIRE(f.run(config) == ExitCode::done);
  CHECK(list_directory(f.dir / "run/state") ==
        std::vector<std::string>{"step-00000004", "step-00000006", "step-00000008"});
  TrainConfig without = f.config("none");
  without.final_state = false;
  REQUIRE(f.run(without) == ExitCode::done);
  CHECK(f.root("none") == "none");
  RecordingReporter reporter;
  CHECK(train(without, reporter) == ExitCode::done);
  CHECK(reporter.steps.empty());
}

TEST_CASE("training: the plan is graded by the run, and --cpu-memory is kept") {
  TrainingFixture f;
  REQUIRE(f.run(f.config("run")) == ExitCode::done);
  const Json plan = parse_json(read_file(f.dir / "run/plan.json"), "plan.json");
  const Json& host = plan.find("memory")->as_array()[0];
  for (const Json& line : host.find("lines")->as_array()) {
    CHECK(line.find("measured") != nullptr);
  }
  TrainConfig tight = f.config("tight");
  tight.cpu_memory = 1 << 20;
  const Raised raised = raised_by([&] { f.run(tight); });
  CHECK(raised.code == ExitCode::usage);
  CHECK(raised.says("--"));
}

TEST_CASE("training: a run that diverges says so and ends with 5") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  config.lr = 1e30;
  config.warmup = 0;
  CHECK(raised_by([&] { f.run(config); }).code == ExitCode::numeric);
  CHECK(file_info(f.dir / "run/model").kind == FileKind::none);
}

TEST_CASE("training: frozen tensors keep their bytes, the others change") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  config.freeze = {"model.layers.1.mlp.experts.*", "model.embed_tokens.weight"};
  REQUIRE(f.run(config) == ExitCode::done);
  const Checkpoint base(f.dir / "base"), tuned(f.dir / "run/model");
  const ParameterTable table = base.make_table();
  for (const Tensor& t : table.tensors()) {
    const auto bytes = [&](const Checkpoint& c) {
      const TensorLocation& at = c.location(t.name);
      std::string data(at.entry.end - at.entry.begin, '\0');
      c.files()[static_cast<size_t>(at.file)]->read(at.entry, data.data(), data.size(), 0);
      return data;
    };
    const bool frozen =
        t.name.find("mlp.experts") != std::string::npos || t.name == "model.embed_tokens.weight";
    INFO(t.name);
    CHECK((bytes(base) == bytes(tuned)) == frozen);
  }
}

TEST_CASE("training: layers for multi-token prediction are told of and copied") {
  TrainingFixture f;
  edit(f.dir / "base", [](auto& tensors) {
    for (const char* name : {"model.layers.2.eh_proj.weight", "mtp.norm.weight"}) {
      tensors.push_back({{name, "BF16", {2}, 0, 0}, "abcd"});
    }
  });
  RecordingReporter reporter;
  REQUIRE(train(f.config("run"), reporter) == ExitCode::done);
  CHECK(std::count_if(reporter.notes.begin(), reporter.notes.end(), [](const std::string& note) {
          return note.starts_with("multi-token prediction: 2 tensors");
        }) == 1);
  const auto tensors = load(f.dir / "run/model/model.safetensors");
  const auto kept = std::find_if(tensors.begin(), tensors.end(), [](const StoredTensor& t) {
    return t.entry.name == "model.layers.2.eh_proj.weight";
  });
  REQUIRE(kept != tensors.end());
  CHECK(kept->data == "abcd");
}

TEST_CASE("training: evaluation is the same packed or not, before and after a run starts") {
  TrainingFixture f;
  RecordingReporter reporter;
  RunConfig config = f.config("x");
  const double packed = evaluate(config, reporter).find("loss")->as_double();
  config.packing = false;
  config.micro_batch = 1;
  const double single = evaluate(config, reporter).find("loss")->as_double();
  CHECK(std::abs(packed - single) < 1e-6 * single);
}

TEST_CASE("training: generation with and without the cache gives the same text") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  config.steps = 30;
  REQUIRE(f.run(config) == ExitCode::done);
  RecordingReporter reporter;
  GenerateConfig g;
  g.model = f.dir / "run/model";
  g.prompt = "row 1";
  g.max_new_tokens = 24;
  std::string pieces;
  const std::string cached =
      generate(g, reporter, [&](const std::string& piece) { pieces += piece; }).text;
  CHECK(pieces == cached);
  g.kv_cache = false;
  CHECK(generate(g, reporter, [](const std::string&) {}).text == cached);
  g.temperature = 0.8;
  const std::string drawn = generate(g, reporter, [](const std::string&) {}).text;
  g.kv_cache = true;
  CHECK(generate(g, reporter, [](const std::string&) {}).text == drawn);
}

}  // namespace
}  // namespace hearth::test
