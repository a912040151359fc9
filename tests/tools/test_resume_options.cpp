// Every option, changed between a stop and the next start: refused by name with both values, or
// harmless, or allowed by --allow-change and told.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <map>
#include <set>

#include "base/sanitized.h"
#include "budget/plan_time.h"
#include "options/option_table.h"
#include "support/failing_calls.h"
#include "support/has.h"
#include "tools/command_line_fixture.h"
#include "train/settled_options.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

namespace fs = std::filesystem;

/// What a change of an option does to a resume.
enum class Change {
  harmless,     // may change: the end has the same bits
  another,      // refused, then allowed by name: the run goes on and its journal says so
  other_state,  // refused, by name, too: the saved state is of other tensors
  only_value,   // this version has no other value
};
struct Case {
  Change change;
  std::vector<std::string> words;  // beside the options of the first start, or in their place
  bool lora = false;               // on a run that trains adapters
};

using enum Change;

/// By option: a value other than that of the first start. An option that is not here fails the test.
std::map<std::string, Case> cases(const TrainingFixture& f) {
  return {
      {"model", {another, {"--model", f.dir / "copy"}}},
      {"data", {another, {"--data", f.dir / "more.jsonl"}}},
      {"eval-data", {another, {"--eval-data", f.dir / "more.jsonl"}}},
      {"out", {harmless, {"--out", f.dir / "moved"}}},
      {"method", {other_state, {"--method", "full"}, true}},
      {"adapter", {another, {"--adapter", f.dir / "whole/adapter"}, true}},
      {"lora-r", {other_state, {"--lora-r", "3"}, true}},
      {"lora-alpha", {another, {"--lora-alpha", "9"}, true}},
      {"lora-dropout", {another, {"--lora-dropout", "0.2"}, true}},
      {"rslora", {another, {"--rslora"}, true}},
      {"expert-r", {other_state, {"--expert-r", "2"}, true}},
      {"lora-targets", {other_state, {"--lora-targets", "attention"}, true}},
      {"experts", {other_state, {"--experts", "top:50%"}, true}},
      {"lora-plus-ratio", {another, {"--lora-plus-ratio", "4"}, true}},
      {"adapter-layout", {another, {"--adapter-layout", "fused"}, true}},
      {"accept-other-base", {another, {"--accept-other-base"}, true}},
      {"trainable", {other_state, {"--trainable", "*.mlp.*"}}},
      {"freeze", {other_state, {"--freeze", "*embed*"}}},
      {"seq-len", {another, {"--seq-len", "64"}}},
      {"micro-batch", {another, {"--micro-batch", "2"}}},
      {"grad-accum", {another, {"--grad-accum", "3"}}},
      {"batch-tokens", {another, {"--batch-tokens", "96"}}},
      {"packing", {another, {"--packing", "off"}}},
      {"shuffle", {another, {"--shuffle", "off"}}},
      {"epochs", {another, {"--epochs", "2"}}},
      {"steps", {another, {"--steps", "7"}}},
      {"overflow", {another, {"--overflow", "drop"}}},
      {"lr", {another, {"--lr", "0.02"}}},
      {"lr-schedule", {another, {"--lr-schedule", "linear"}}},
      {"warmup", {another, {"--warmup", "1"}}},
      {"warmup-ratio", {another, {"--warmup-ratio", "0.5"}}},
      {"min-lr-ratio", {another, {"--min-lr-ratio", "0.2"}}},
      {"weight-decay", {another, {"--weight-decay", "0.1"}}},
      {"beta1", {another, {"--beta1", "0.8"}}},
      {"beta2", {another, {"--beta2", "0.95"}}},
      {"eps", {another, {"--eps", "1e-6"}}},
      {"max-grad-norm", {another, {"--max-grad-norm", "0.5"}}},
      {"neftune", {another, {"--neftune", "5"}}},
      {"router-aux-loss", {another, {"--router-aux-loss", "0.1"}}},
      {"aux-loss-mode", {another, {"--aux-loss-mode", "hf"}}},
      {"router-z-loss", {another, {"--router-z-loss", "0.1"}}},
      {"decay-all", {another, {"--decay-all"}}},
      {"seed", {another, {"--seed", "7"}}},
      {"format", {another, {"--format", "text"}}},
      {"chat-template", {another, {"--chat-template", "chatml"}}},
      {"template-args", {another, {"--template-args", "enable_thinking=false"}}},
      {"template-date", {another, {"--template-date", "2020-01-02"}}},
      {"train-on", {another, {"--train-on", "all"}}},
      {"no-special-in-content", {another, {"--no-special-in-content"}}},
      {"columns", {another, {"--columns", "text=text"}}},
      {"max-samples", {another, {"--max-samples", "8"}}},
      {"skip-bad-rows", {another, {"--skip-bad-rows", "3"}}},
      {"val-size", {another, {"--val-size", "2"}}},
      {"data-cache", {harmless, {"--data-cache", "1M"}}},
      {"parallel", {harmless, {"--parallel", "dp"}}},
      {"policy", {only_value, {}}},  // its own rules: test_static_policy.cpp
      {"predictor", {harmless, {"--predictor", "pre-attention"}}},
      {"phases", {only_value, {}}},    // its own rules: test_load_phases.cpp
      {"equation", {only_value, {}}},  // its own rules: test_aptmoe.cpp
      {"partial-sums", {another, {"--partial-sums", "on"}}},
      {"divide-experts", {another, {"--divide-experts", "on"}}},
      {"topology", {another, {"--topology", f.dir / "machine.xml"}}},
      {"devices", {another, {"--devices", "host"}}},
      {"cpu-memory", {another, {"--cpu-memory", "8G"}}},
      {"gpu-memory", {another, {"--gpu-memory", "8G"}}},
      {"threads", {harmless, {"--threads", "3"}}},
      {"compute-dtype", {another, {"--compute-dtype", "bf16"}}},
      {"recompute", {another, {"--recompute", "blocks"}}},
      {"deterministic", {harmless, {"--deterministic"}}},
      {"logical-shards", {another, {"--logical-shards", "2"}}},
      {"thread-ranks", {only_value, {}}},  // its own rules: test_ranks.cpp
      {"expert-ranks", {only_value, {}}},  // the same: test_expert_parallel.cpp
      {"attention-ranks", {only_value, {}}},
      {"rank-devices", {harmless, {"--rank-devices", "0=host"}}},
      {"expert-shift", {harmless, {"--expert-shift", "off"}}},
      {"levels", {only_value, {}}},  // test_expert_domains.cpp
      {"domains", {only_value, {}}},
      {"kept-layers", {only_value, {}}},
      {"wire", {only_value, {}}},  // test_wired_experts.cpp
      {"wire-threshold", {another, {"--wire-threshold", "0.2"}}},
      {"wire-consistent", {another, {"--wire-consistent"}}},
      {"rank-links", {harmless, {"--rank-links", "1G:20us"}}},
      {"rank-limit", {harmless, {"--rank-limit", "30s"}}},
      {"plan", {another, {"--plan", f.dir / "plan.json"}}},
      {"profile", {only_value, {}}},  // its own rules: test_run_tables.cpp
      {"follow-links", {another, {"--follow-links"}}},
      {"save-every", {harmless, {"--save-every", "1"}}},
      {"keep", {harmless, {"--keep", "1"}}},
      {"keep-best", {harmless, {"--keep-best", "1"}}},
      {"metric", {only_value, {}}},
      {"early-stopping", {harmless, {"--early-stopping", "9", "--eval-every", "2"}}},
      {"load-best", {another, {"--load-best"}}},
      {"max-time", {harmless, {"--max-time", "1h"}}},
      {"final-state", {another, {"--final-state", "off"}}},
      {"resume", {harmless, {"--resume", f.dir / "elsewhere"}}},
      {"allow-change", {harmless, {"--allow-change", "lr"}}},
      {"eval-every", {harmless, {"--eval-every", "2"}}},
      {"eval-at-start", {another, {"--eval-at-start"}}},
      {"samples", {another, {"--samples", "1"}}},
      {"strict", {another, {"--strict"}}},
      {"log-every", {harmless, {"--log-every", "2"}}},
      {"tokens-by-expert", {harmless, {"--tokens-by-expert", "on"}}},
      {"journal-decisions", {harmless, {"--journal-decisions", "full"}}},
      {"replay-decisions", {only_value, {}}},  // its own rules: test_replayed_decisions.cpp
      {"json", {harmless, {"--json"}}},
      {"digest-every", {harmless, {"--digest-every", "3"}}},
      {"trace", {harmless, {"--trace", f.dir / "trace.json"}}},
      {"quiet", {harmless, {"--quiet"}}},
      {"verbose", {harmless, {"--verbose"}}},
  };
}

/// A machine of one core, in hwloc's format.
constexpr const char* kOneCore =
    R"(<topology version="2.0"><object type="Machine" os_index="0" gp_index="1" cpuset="0x1"
 complete_cpuset="0x1" allowed_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1"
 allowed_nodeset="0x1"><object type="NUMANode" os_index="0" gp_index="2" cpuset="0x1"
 complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" local_memory="68719476736"/>
<object type="Core" os_index="0" gp_index="3" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1"
 complete_nodeset="0x1"><object type="PU" os_index="0" gp_index="4" cpuset="0x1"
 complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1"/></object></object></topology>)";

/// A run that was stopped at step 3 of 6, its directory put back before each start.
struct StoppedRun {
  TrainingFixture f;
  AssumedRates quick;
  std::vector<std::string> words;
  std::string root, result;  // of the run that was not stopped

  /// `without`: options of the first start that are left out; `with`: further ones.
  explicit StoppedRun(const std::vector<std::string>& without,
                      const std::vector<std::string>& with = {}) {
    fs::copy(f.dir / "base", f.dir / "copy");
    std::string texts;
    for (int i = 0; i < 12; ++i) {
      texts += R"({"text": "row )" + std::to_string(i) + std::string(3 * i, 'x') + "\"}\n";
    }
    TrainingFixture::write(f.dir / "texts.jsonl", texts);
    TrainingFixture::write(f.dir / "more.jsonl", texts + texts);
    words = {"--model",      f.dir / "base",
             "--data",       f.dir / "texts.jsonl",
             "--eval-data",  f.dir / "texts.jsonl",
             "--out",        f.dir / "run",
             "--steps",      "6",
             "--lr",         "0.01",
             "--seq-len",    "48",
             "--grad-accum", "2",
             "--packing",    "on",
             "--threads",    "1"};
    words.insert(words.end(), with.begin(), with.end());
    for (const std::string& option : without) {
      const auto at = std::find(words.begin(), words.end(), option);
      words.erase(at, at + 2);
    }
    TrainingFixture::write(f.dir / "plan.json", plan_of(config({})).json.dump());
    TrainingFixture::write(f.dir / "machine.xml", kOneCore);
    TrainConfig whole = config({"--out", f.dir / "whole"});
    REQUIRE(f.run(whole) == ExitCode::done);
    root = f.root("whole");
    result = f.result("whole");
    REQUIRE(f.run_until(config({}), 3) == ExitCode::stopped);
    fs::copy(f.dir / "run", f.dir / "kept", fs::copy_options::recursive);
  }

  /// The options of the first start with `more` in the place of what has the same name.
  TrainConfig config(std::vector<std::string> more) const {
    std::vector<std::string> all{"train"};
    for (size_t i = 0; i < words.size(); i += 2) {
      const bool replaced = std::find(more.begin(), more.end(), words[i]) != more.end() ||
                            (words[i] == "--grad-accum" &&
                             std::find(more.begin(), more.end(), "--batch-tokens") != more.end());
      if (!replaced) all.insert(all.end(), {words[i], words[i + 1]});
    }
    all.insert(all.end(), more.begin(), more.end());
    TrainConfig config = parsed(all);
    config.data_cache = 0;
    settle_options(config);
    return config;
  }
  void put_back() const {
    fs::remove_all(f.dir / "run");
    fs::remove_all(f.dir / "moved");
    fs::copy(f.dir / "kept", f.dir / "run", fs::copy_options::recursive);
  }
  std::map<std::string, std::string> content() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(f.dir / "run")) {
      files[entry.path()] = entry.is_regular_file() ? read_file(entry.path()) : "";
    }
    return files;
  }
  static std::string recorded(const TrainConfig& config, const std::string& option) {
    for (const auto& r : config.recorded) {
      if (r.name == option) return r.value;
    }
    return "";
  }
};

void check_refused(const StoppedRun& stopped, const std::string& name, const TrainConfig& changed) {
  const auto before = stopped.content();
  const Raised raised = raised_by([&] {
    RecordingReporter reporter;
    train(changed, reporter);
  });
  INFO(raised.message);
  CHECK(raised.code == ExitCode::usage);
  CHECK(raised.says("--" + name));
  for (const TrainConfig& config : {stopped.config({}), changed}) {
    const std::string value = StoppedRun::recorded(config, name);
    const bool is_text = value.starts_with('"');  // shown without the quotes of YAML
    const std::string plain = value == "null" ? "unset" : value;
    CHECK(raised.says(quoted(is_text ? parse_json(value, name).as_string() : plain)));
  }
  CHECK(stopped.content() == before);
}

void check_option(const StoppedRun& stopped, const std::string& name, const Case& c) {
  stopped.put_back();
  if (name == "out") fs::rename(stopped.f.dir / "run", stopped.f.dir / "moved");
  const TrainConfig changed = stopped.config(c.words);
  REQUIRE(StoppedRun::recorded(changed, name) != StoppedRun::recorded(stopped.config({}), name));
  RecordingReporter reporter;
  if (c.change == harmless) {
    CHECK(train(changed, reporter) == ExitCode::done);
    CHECK(reporter.steps.size() == 3);
    const std::string out = name == "out" ? "moved" : "run";
    CHECK(stopped.f.root(out) == stopped.root);
    CHECK(stopped.f.result(out) == stopped.result);
    return;
  }
  check_refused(stopped, name, changed);
  std::vector<std::string> words = c.words;
  words.insert(words.end(), {"--allow-change", name});
  const TrainConfig allowed = stopped.config(words);
  if (c.change == other_state) {
    const auto before = stopped.content();
    const Raised raised = raised_by([&] { train(allowed, reporter); });
    INFO(raised.message);
    CHECK(raised.code == ExitCode::usage);
    CHECK(raised.says("--" + name + ": cannot change on a resume, not even if allowed"));
    CHECK(stopped.content() == before);
    return;
  }
  CHECK(train(allowed, reporter) == ExitCode::done);
  const std::string change = name + ": ";
  const std::string journal = read_file(stopped.f.dir / "run/journal.jsonl");
  CHECK(journal.find("\"changes\": [\"" + change) != std::string::npos);
  const bool same =
      std::set<std::string>{"devices", "topology", "cpu-memory", "gpu-memory"}.contains(name);
  const std::vector<std::string>& told = same ? reporter.notes : reporter.warnings;
  CHECK(std::any_of(told.begin(), told.end(), [&](const auto& line) {
    return has(line, change) &&
           has(line, same ? "the bits stay the same" : "may differ in its bits");
  }));
}

TEST_CASE("resume: every option of train, changed after a stop") {
  FailingCalls quick;
  const FileCallsOverride no_syncs(quick);
  const StoppedRun stopped({}), lora({}, {"--method", "lora"});
  const auto all = cases(stopped.f), all_lora = cases(lora.f);
  int n = 0;
  for (const Option& option : option_table()) {
    if (!option.commands.contains(Command::train)) continue;
    INFO("--" << option.name);
    REQUIRE(all.contains(option.name));
    const Case& c = all.at(option.name);
    if (c.change == only_value || option.name == "val-size") continue;
    if (kSanitized && ++n % 4 != 0) continue;
    if (c.lora) {
      check_option(lora, option.name, all_lora.at(option.name));
    } else {
      check_option(stopped, option.name, c);
    }
  }
  // Rows are kept for evaluation only where no file is.
  StoppedRun without({"--eval-data"});
  check_option(without, "val-size", all.at("val-size"));
}

}  // namespace
}  // namespace hearth::test
