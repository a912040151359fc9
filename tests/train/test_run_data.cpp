// The data of runs: the cache and the split for evaluation change no bit of what is trained.
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <filesystem>

#include "training_fixture.h"

using namespace hearth;
using namespace hearth::test;

namespace {

// A cache directory of this test alone.
class OwnCache {
 public:
  explicit OwnCache(const std::string& directory) {
    const char* was = std::getenv("XDG_CACHE_HOME");
    if (was != nullptr) before_ = was;
    ::setenv("XDG_CACHE_HOME", directory.c_str(), 1);
  }
  ~OwnCache() { ::setenv("XDG_CACHE_HOME", before_.c_str(), 1); }

 private:
  std::string before_;
};

std::vector<std::string> entries(const std::string& cache) {
  std::vector<std::string> names;
  for (const std::string& name : list_directory(cache + "/hearth/rows")) {
    if (!name.starts_with(".lock-")) names.push_back(name);
  }
  return names;
}

}  // namespace

TEST_CASE("a run has the same bits cold, from the cache, without it, and stopped in between") {
  TrainingFixture f;
  const OwnCache cache(f.dir / "cache");
  TrainConfig config = f.config("none");
  config.data = {f.dir / "rows.jsonl:1.5"};
  REQUIRE(f.run(config) == ExitCode::done);
  config.data_cache = uint64_t{1} << 30;
  config.out = f.dir / "cold";
  REQUIRE(f.run(config) == ExitCode::done);
  REQUIRE(entries(f.dir / "cache").size() == 1);
  config.out = f.dir / "warm";
  config.threads = 1;
  REQUIRE(f.run(config) == ExitCode::done);
  config.out = f.dir / "stopped";
  REQUIRE(f.run_until(config, 3) == ExitCode::stopped);
  remove_tree(f.dir / "cache");
  REQUIRE(f.run(config) == ExitCode::done);
  for (const char* out : {"cold", "warm", "stopped"}) {
    INFO(out);
    CHECK(f.root(out) == f.root("none"));
    CHECK(f.result(out) == f.result("none"));
  }
  REQUIRE(entries(f.dir / "cache").size() == 1);
  for (const char* out : {"cold", "warm", "stopped"}) {
    for (const std::string& name : list_directory(f.dir / out)) {
      CHECK_FALSE(name.starts_with(".tmp"));
    }
  }
}

TEST_CASE("content that changed is told on resume, whatever the cache holds") {
  TrainingFixture f;
  const OwnCache cache(f.dir / "cache");
  TrainConfig config = f.config("run");
  config.data_cache = uint64_t{1} << 30;
  REQUIRE(f.run_until(config, 3) == ExitCode::stopped);
  const std::string rows = read_file(f.dir / "rows.jsonl");
  std::string changed = rows;
  changed[changed.find("row 3") + 4] = '9';
  f.write(f.dir / "rows.jsonl", changed);
  const Raised raised = raised_by([&] { f.run(config); });
  CHECK(raised.code == ExitCode::input);
  CHECK(raised.says("rows.jsonl"));
  f.write(f.dir / "rows.jsonl", rows);
  CHECK(f.run(config) == ExitCode::done);
}

TEST_CASE("another content of the file that --chat-template names is told on resume") {
  TrainingFixture f;
  const OwnCache cache(f.dir / "cache");
  f.write(
      f.dir / "rows.jsonl",
      R"({"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]})");
  const std::string source =
      "{% for m in messages %}{{ m.role }}: {{ m.content }}<|im_end|>{% endfor %}"
      "{% if add_generation_prompt %}assistant: {% endif %}";
  f.write(f.dir / "my.jinja", source);
  TrainConfig config = f.config("run");
  config.chat_template = f.dir / "my.jinja";
  REQUIRE(f.run_until(config, 3) == ExitCode::stopped);
  f.write(f.dir / "my.jinja", "-" + source);
  const Raised raised = raised_by([&] { f.run(config); });
  CHECK(raised.code == ExitCode::input);
  CHECK(raised.says("my.jinja"));
  f.write(f.dir / "my.jinja", source);
  CHECK(f.run(config) == ExitCode::done);
}

TEST_CASE("a template of the model is chosen by its name") {
  TrainingFixture f;
  const OwnCache cache(f.dir / "cache");
  const std::string file = f.dir / "base/tokenizer_config.json";
  Json settings = parse_json(read_file(file), file);
  const std::string source = "{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}";
  settings["chat_template"] = JsonArray{JsonObject{{"name", "default"}, {"template", source}},
                                        JsonObject{{"name", "mine"}, {"template", "Q: " + source}}};
  f.write(file, settings.dump());
  std::filesystem::remove(f.dir / "base/chat_template.jinja");
  TrainConfig config = f.config("run");
  config.chat_template = "mine";
  REQUIRE(f.run_until(config, 3) == ExitCode::stopped);
  CHECK(f.run(config) == ExitCode::done);
  config = f.config("other");
  config.chat_template = "hers";
  CHECK(raised_by([&] { f.run(config); }).says("hers"));
}

TEST_CASE("a last trained token that ends no turn is told, but not of rows of ids") {
  TrainingFixture f;
  const OwnCache cache(f.dir / "cache");
  TrainConfig config = f.config("run");
  config.data_cache = uint64_t{1} << 30;
  const auto warned = [&](const std::string& row) {
    f.write(f.dir / "rows.jsonl", row);
    bool any = false;
    for (const char* out : {"cold", "warm"}) {
      RecordingReporter reporter;
      config.out = f.dir / (out + std::to_string(row.size()));
      REQUIRE(train(config, reporter) == ExitCode::done);
      const bool told = std::any_of(
          reporter.warnings.begin(), reporter.warnings.end(), [](const std::string& line) {
            return line.find("will not learn where to stop") != std::string::npos;
          });
      if (std::string_view(out) == "warm") CHECK(told == any);
      any = told;
    }
    return any;
  };
  config.chat_template = f.dir / "my.jinja";
  f.write(config.chat_template,
          "{% for m in messages %}{{ m.role }}: {{ m.content }};{% endfor %}");
  CHECK(warned(R"({"messages": [{"role": "assistant", "content": "A"}]})"));
  CHECK_FALSE(warned(R"({"text": "A"})"));
  CHECK_FALSE(warned(R"({"input_ids": [65, 66, 67], "labels": [65, 66, 67]})"));
}

TEST_CASE("the rows kept for evaluation stay so after a resume") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  config.val_size = 0.25;
  config.eval_every.steps = 4;
  config.recorded.push_back({"seed", "42", false});
  config.recorded.push_back({"val-size", "0.25", false});
  REQUIRE(f.run_until(config, 3) == ExitCode::stopped);
  TrainConfig other = config;
  other.seed = 43;
  other.recorded[3].value = "43";
  other.allow_change = {"seed"};
  const Raised raised = raised_by([&] { f.run(other); });
  CHECK(raised.code == ExitCode::usage);
  CHECK(raised.says("--val-size: other rows would be kept for evaluation"));
  other.allow_change = {"seed", "val-size"};
  CHECK(f.run(other) == ExitCode::done);

  TrainConfig straight = f.config("straight");
  straight.val_size = 0.25;
  straight.eval_every.steps = 4;
  RecordingReporter reporter;
  REQUIRE(train(straight, reporter) == ExitCode::done);
  int evaluations = 0;
  for (const std::string& note : reporter.notes)
    evaluations += note.find("evaluation at step") == 0;
  CHECK(evaluations == 2);
  CHECK(std::any_of(reporter.notes.begin(), reporter.notes.end(), [](const std::string& note) {
    return note.find("6 rows held back for evaluation") != std::string::npos;
  }));
}

TEST_CASE("an option that an older version did not record is no change while it has its default") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  REQUIRE(f.run_until(config, 3) == ExitCode::stopped);
  config.recorded.push_back({"val-size", "5", false, false});
  CHECK(raised_by([&] { f.run(config); }).code == ExitCode::usage);
  config.recorded.back() = {"val-size", "0", false, true};
  CHECK(f.run(config) == ExitCode::done);
}

TEST_CASE("plan tells what the data come to") {
  TrainingFixture f;
  TrainConfig config = f.config("x");
  config.seq_len = 40;
  config.steps.reset();
  config.epochs = 3;
  const PlanReport report = plan_of(config);
  const Json* data = report.json.find("data");
  REQUIRE(data != nullptr);
  CHECK(data->find("rows")->as_int() == 24);
  CHECK(data->find("truncated_rows")->as_int() > 0);
  CHECK(data->find("truncated_tokens")->as_int() >=
        data->find("truncated_trained_tokens")->as_int());
  CHECK(data->find("truncated_trained_tokens")->as_int() > 0);
  CHECK(data->find("length_p50")->as_int() <= data->find("length_p90")->as_int());
  CHECK(data->find("length_p99")->as_int() <= data->find("length_max")->as_int());
  CHECK(data->find("epoch_tokens")->as_int() == data->find("tokens")->as_int());
  const double fill = data->find("packing_efficiency")->as_double();
  CHECK(fill > 0.5);
  CHECK(fill <= 1);
  const double sequences = static_cast<double>(data->find("epoch_sequences")->as_int());
  CHECK(data->find("epoch_steps")->as_double() == sequences / 6);
  CHECK(std::abs(data->find("epochs")->as_double() - 3) < 0.5);
  CHECK(report.text.find("truncated") == std::string::npos);
  CHECK(report.text.find("rows cut") != std::string::npos);
}
