#include "durable/tiny_run.h"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "base/error.h"
#include "base/file_ops.h"
#include "base/json.h"
#include "state/state_search.h"
#include "support/test_paths.h"

namespace hearth::test {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSteps = 10;

// What a killed process wrote stays in memory as it stays on a disk, and there syncs cost nothing.
const bool in_memory = [] {
  const char* shared = "/dev/shm";
  std::error_code none;
  if (::access(shared, W_OK) != 0 || fs::space(shared, none).available < (uint64_t{48} << 20)) {
    return false;
  }
  return ::setenv("TMPDIR", shared, 1) == 0;
}();

// Lines of a log, a torn last one left out.
std::vector<std::string> whole_lines(const std::string& path) {
  std::vector<std::string> lines;
  if (file_info(path).kind == FileKind::none) return lines;
  const std::string text = read_file(path);
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    lines.push_back(text.substr(at, end - at));
  }
  return lines;
}

// A line of metrics without what is of this machine's time and memory, and without the evaluation: if a
// signal cuts it off, the next start repeats it, and the journal alone has it.
std::string lasting_part(const Json& line) {
  static const std::set<std::string> passing{"time",
                                             "eval_loss",
                                             "time_s",
                                             "tokens_per_s",
                                             "bound_pct",
                                             "busy",
                                             "limit",
                                             "stall_s",
                                             "cpu_s",
                                             "peak_rss_bytes",
                                             "peak_device_bytes",
                                             "late_load_s",
                                             "expert_hit_rate",
                                             "residency",
                                             "ranks",
                                             "utilisation"};
  // Where weights travel, what a device holds from the steps before need not be loaded again.
  const Json* const residency = line.find("residency");
  const bool travels =
      residency != nullptr && residency->is_array() && !residency->as_array().empty();
  // Between ranks go saves and loads, too.
  const bool is_shared = line.find("ranks") != nullptr;
  Json lasting = JsonObject{};
  for (const auto& [key, value] : line.as_object()) {
    if (passing.contains(key) || ((travels || is_shared) && key == "bytes")) continue;
    lasting[key] = value;
  }
  return lasting.dump();
}

// The lines of a run by step; "bad" has the first that differs from an earlier one of its step.
std::map<int64_t, std::string> metrics_by_step(const std::string& run, std::string& bad) {
  std::map<int64_t, std::string> steps;
  for (const std::string& text : metrics_lines(run)) {
    const Json line = parse_json(text, run + "/metrics.jsonl");
    const std::string lasting = lasting_part(line);
    const auto [at, is_new] = steps.emplace(line.find("step")->as_int(), lasting);
    if (!is_new && at->second != lasting && bad.empty()) {
      bad = "repeated steps have other metrics: " + at->second + " and " + lasting;
    }
  }
  return steps;
}

std::string unexpected_name(const std::string& run) {
  static const std::set<std::string> known{".lock",         "config.yaml",   "plan.json",
                                           "metrics.jsonl", "journal.jsonl", "state",
                                           "model",         "adapter"};
  for (const std::string& name : list_directory(run)) {
    if (!known.contains(name) && !name.starts_with("events.out.tfevents.")) return name;
  }
  static const std::set<std::string> of_result{"README.md",
                                               "config.json",
                                               "model.safetensors",
                                               "tokenizer.json",
                                               "tokenizer_config.json",
                                               "adapter_config.json",
                                               "adapter_model.safetensors"};
  for (const std::string result : {"model", "adapter"}) {
    if (file_info(run + "/" + result).kind == FileKind::none) continue;
    for (const std::string& name : list_directory(run + "/" + result)) {
      if (!of_result.contains(name)) return result + "/" + name;
    }
    if (file_info(run + "/" + result + "/README.md").size == 0) return "no card, which";
  }
  for (const std::string& name : list_directory(run + "/state")) {
    if (!step_of_state_directory(name)) return "state/" + name;
  }
  return "";
}

}  // namespace

TinyRun::TinyRun() {
  std::ofstream(d / "config.json") << R"({"model_type": "qwen3_moe",
    "architectures": ["Qwen3MoeForCausalLM"], "vocab_size": 260, "hidden_size": 16,
    "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 1, "head_dim": 8, "hidden_act": "silu",
    "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
    "tie_word_embeddings": false, "attention_bias": false, "num_experts": 4,
    "num_experts_per_tok": 2, "moe_intermediate_size": 8, "norm_topk_prob": true,
    "decoder_sparse_step": 1, "mlp_only_layers": [], "router_aux_loss_coef": 0.001,
    "use_sliding_window": false, "torch_dtype": "bfloat16"})";
  std::ofstream rows(d / "rows.jsonl"), eval(d / "eval.jsonl");
  for (int i = 0; i < 12; ++i) {
    const std::string row =
        R"({"text": "row number )" + std::to_string(i) + std::string(i, 'x') + "\"}\n";
    rows << row;
    if (i % 4 == 0) eval << row;
  }
  rows.close();
  eval.close();
  const Ended made = run(command({"init", "--config", d / "config.json", "--out", d / "model"}));
  INFO(made.err);
  REQUIRE(made.code == 0);
}

Start TinyRun::command(std::vector<std::string> words) const {
  Start start;
  start.words = std::move(words);
  start.environment["XDG_CACHE_HOME"] = d / "cache";
  return start;
}

Start TinyRun::train(const std::string& out, std::vector<std::string> more) const {
  std::vector<std::string> words{"train",
                                 "--model",
                                 d / "model",
                                 "--data",
                                 d / "rows.jsonl",
                                 "--eval-data",
                                 d / "eval.jsonl",
                                 "--out",
                                 d / out,
                                 "--steps",
                                 std::to_string(kSteps),
                                 "--micro-batch",
                                 "1",
                                 "--grad-accum",
                                 "2",
                                 "--seq-len",
                                 "48",
                                 "--lr",
                                 "1e-2",
                                 "--eval-every",
                                 "3",
                                 "--quiet"};
  const auto set = [&](const char* option, const char* value) {
    if (std::find(more.begin(), more.end(), option) != more.end()) return;
    words.insert(words.end(), {option, value});
  };
  set("--packing", "on");
  set("--threads", "1");
  set("--save-every", "1");
  set("--keep", "2");
  words.insert(words.end(), more.begin(), more.end());
  return command(words);
}

Ended TinyRun::run(const Start& start) const { return test::run(test_binary(), start); }

std::string TinyRun::finish(const Start& start) const {
  const Ended ended = run(start);
  if (ended.code == 0) return "";
  return "the same command ends with " + std::to_string(ended.code) + ": " + ended.err;
}

Outcome TinyRun::outcome(const std::string& out) const {
  Outcome outcome;
  const std::string run = d / out;
  const auto state = find_newest_state(run, [](const RejectedState&) {});
  if (state) outcome.root = std::to_string(state->step) + " " + state->digest.root.hex();
  outcome.model = content_below(run + "/model");
  outcome.model.merge(content_below(run + "/adapter"));
  std::string bad;
  outcome.metrics = metrics_by_step(run, bad);
  for (const std::string& text : whole_lines(run + "/journal.jsonl")) {
    const Json line = parse_json(text, "journal");
    if (line.find("event")->as_string() != "eval") continue;
    outcome.evals[line.find("step")->dump() + " " + line.find("when")->as_string()] =
        line.find("loss")->dump();
  }
  return outcome;
}

std::string TinyRun::wrong_between(const std::string& out, int keep) const {
  const std::string run = d / out;
  const std::vector<int64_t> steps = steps_of_states(run);
  if (static_cast<int>(steps.size()) > keep + 1) return "more states than are kept";
  for (const int64_t step : steps) {
    try {
      verify_state(run + "/state/" + state_directory_name(step));
    } catch (const Error& e) {
      return std::string("a published state is not whole: ") + e.what();
    }
  }
  std::string bad;
  const auto metrics = metrics_by_step(run, bad);
  if (!steps.empty() && !metrics.contains(steps.back())) {
    return "state " + std::to_string(steps.back()) + " came before its line of metrics";
  }
  const bool has_result = file_info(run + "/model").kind == FileKind::directory ||
                          file_info(run + "/adapter").kind == FileKind::directory;
  if (has_result && !metrics.contains(kSteps)) return "a result before the last step";
  return bad;
}

std::string TinyRun::wrong_at_end(const std::string& out, int keep, const Outcome& expected,
                                  bool all_kept) const {
  const std::string run = d / out;
  if (const std::string wrong = wrong_between(out, keep); !wrong.empty()) return wrong;
  if (const std::string name = unexpected_name(run); !name.empty()) return name + " was left";
  if (file_info(run + "/.lock").size != 0) return "something was written into .lock";
  const auto states = static_cast<int>(steps_of_states(run).size());
  if (states > keep || states < (all_kept ? keep : 1))
    return std::to_string(states) + " states remain";
  const Outcome found = outcome(out);
  if (found.root != expected.root) return "state " + found.root + ", not " + expected.root;
  if (found.model != expected.model) return "another result";
  if (found.metrics != expected.metrics) return "other metrics";
  for (const auto& [when, loss] : expected.evals) {
    if (!found.evals.contains(when) || found.evals.at(when) != loss) return "evaluation " + when;
  }
  return "";
}

std::vector<int64_t> steps_of_states(const std::string& run_directory) {
  std::vector<int64_t> steps;
  if (file_info(run_directory + "/state").kind == FileKind::none) return steps;
  for (const std::string& name : list_directory(run_directory + "/state")) {
    if (const auto step = step_of_state_directory(name)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<std::string> metrics_lines(const std::string& run_directory) {
  return whole_lines(run_directory + "/metrics.jsonl");
}

std::map<std::string, std::string> content_below(const std::string& directory) {
  std::map<std::string, std::string> files;
  if (!fs::exists(directory)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    const std::string name = fs::relative(entry.path(), directory);
    if (entry.is_regular_file()) {
      files[name] = read_file(entry.path());
    } else {
      files[name + "/"];
    }
  }
  return files;
}

Seeded::Seeded(uint64_t otherwise) : seed(otherwise) {
  if (const char* given = std::getenv("HEARTH_SEED")) seed = std::strtoull(given, nullptr, 10);
  generator.seed(seed);
}

int64_t Seeded::whole(int64_t from, int64_t to) {
  return std::uniform_int_distribution<int64_t>(from, to)(generator);
}

double Seeded::real(double from, double to) {
  return std::uniform_real_distribution<double>(from, to)(generator);
}

std::string wrong_refusal(const Ended& result, int code, const std::vector<std::string>& parts) {
  const std::string got = "code " + std::to_string(result.code) + ": " + result.err;
  if (result.code != code) return got;
  if (std::count(result.err.begin(), result.err.end(), '\n') != 1) return "not one line, " + got;
  if (!result.err.starts_with("hearth: ")) return "not 'hearth: ', " + got;
  for (const std::string& part : parts) {
    if (result.err.find(part) == std::string::npos) return "'" + part + "' is missing, " + got;
  }
  return "";
}

}  // namespace hearth::test
