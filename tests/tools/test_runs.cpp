// The built program on a small model: what a user gets from train, plan, export, eval and generate.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "base/json.h"
#include "support/program.h"

using hearth::Json;
using hearth::parse_json;
using hearth::test::ProgramResult;
namespace fs = std::filesystem;

namespace {

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// Relative paths of the files below a folder, with their content.
std::map<std::string, std::string> files_below(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files[fs::relative(entry.path(), folder)] = content(entry.path());
  }
  return files;
}

std::vector<Json> lines_of(const std::string& path) {
  std::vector<Json> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(parse_json(line, path));
  return lines;
}

/// A model, rows, and the program run beside them.
struct Workplace {
  hearth::test::TemporaryDirectory d;

  Workplace() {
    write(d / "config.json", R"({"model_type": "qwen3_moe",
      "architectures": ["Qwen3MoeForCausalLM"], "vocab_size": 300, "hidden_size": 32,
      "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
      "num_key_value_heads": 2, "head_dim": 8, "hidden_act": "silu",
      "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
      "tie_word_embeddings": false, "attention_bias": false, "num_experts": 4,
      "num_experts_per_tok": 2, "moe_intermediate_size": 16, "norm_topk_prob": true,
      "decoder_sparse_step": 1, "mlp_only_layers": [], "router_aux_loss_coef": 0.001,
      "use_sliding_window": false, "torch_dtype": "bfloat16"})");
    std::string rows;
    for (int i = 0; i < 12; ++i) {
      rows += R"({"text": "row number )" + std::to_string(i) + std::string(2 * i, 'x') + "\"}\n";
    }
    write(d / "rows.jsonl", rows);
    write(d / "eval.jsonl", rows.substr(0, rows.find('\n', rows.size() / 2) + 1));
    REQUIRE(run({"init", "--config", d / "config.json", "--out", d / "model"}).exit_code == 0);
  }

  ProgramResult run(std::vector<std::string> words) const {
    return hearth::test::run_program(HEARTH_BINARY, words);
  }
  /// Four steps of two micro-batches into d/OUT.
  std::vector<std::string> train(const std::string& out,
                                 const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{
        "train", "--model",      d / "model", "--data",    d / "rows.jsonl",
        "--out", d / out,        "--steps",   "4",         "--micro-batch",
        "2",     "--grad-accum", "2",         "--seq-len", "64",
        "--lr",  "1e-2",         "--threads", "2"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  /// The same options for plan, printed as JSON.
  std::vector<std::string> plan(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = train("unused", more);
    words[0] = "plan";
    words.push_back("--json");
    return words;
  }
};

bool one_line(const ProgramResult& r, int code, const std::string& part) {
  INFO(r.err);
  return r.exit_code == code && r.err.starts_with("hearth: ") &&
         r.err.find('\n') == r.err.size() - 1 && r.err.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("export: saved state as the checkpoint that the run wrote") {
  const Workplace w;
  const ProgramResult trained = w.run(w.train("run", {"--freeze", "*embed*", "--save-every", "2"}));
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  const auto model = files_below(w.d / "run/model");
  const auto before = files_below(w.d / "run");
  const auto base = files_below(w.d / "model");
  CHECK(model != base);

  // From the run directory and from a state, the last one: the bytes of the result.
  for (const std::string from : {"run", "run/state/step-00000004", "run/state/step-00000004/"}) {
    const ProgramResult r = w.run({"export", "--from-state", w.d / from, "--out", w.d / "e/x"});
    INFO(from << ": " << r.err);
    CHECK(r.exit_code == 0);
    CHECK(r.out.empty());
    CHECK(files_below(w.d / "e/x") == model);
    fs::remove_all(w.d / "e");
  }
  CHECK(w.run({"export", "--from-state", w.d / "run/state/step-00000002", "--out", w.d / "e",
               "--model", w.d / "model"})
            .exit_code == 0);
  const auto earlier = files_below(w.d / "e");
  CHECK(earlier != model);
  CHECK(earlier.at("config.json") == model.at("config.json"));
  CHECK(w.run({"eval", "--model", w.d / "e", "--data", w.d / "rows.jsonl"}).exit_code == 0);

  // Refusals: nothing is written, inputs stay as they are.
  const auto with = [&](const std::string& from, const std::string& out,
                        const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"export", "--from-state", w.d / from, "--out", w.d / out};
    words.insert(words.end(), more.begin(), more.end());
    return w.run(words);
  };
  CHECK(one_line(with("run", "e"), 2, "exists already"));
  CHECK(one_line(with("run", "run/exported"), 2, "lies in"));
  CHECK(one_line(with("run", "run/state/step-00000004/x"), 2, "lies in"));
  CHECK(one_line(with("run", "f", {"--adapter", "a"}), 2, "--adapter: not in this version"));
  CHECK(one_line(w.run({"export", "--model", w.d / "model", "--out", w.d / "f"}), 2,
                 "--from-state is missing"));
  CHECK(one_line(with("model", "f"), 3, "no saved state"));
  CHECK(one_line(with("nothing", "f"), 3, "nothing"));
  CHECK(one_line(with("run", "f", {"--model", w.d / "nothing"}), 3, "--model"));
  REQUIRE(w.run({"init", "--config", w.d / "config.json", "--out", w.d / "other", "--seed", "9"})
              .exit_code == 0);
  CHECK(one_line(with("run", "f", {"--model", w.d / "other"}), 3, "has other content"));
  CHECK_FALSE(fs::exists(w.d / "f"));
  CHECK(files_below(w.d / "run") == before);
  CHECK(files_below(w.d / "model") == base);

  // A damaged state is passed over in a run directory, and refused by name.
  fs::resize_file(w.d / "run/state/step-00000004/weights.safetensors", 500);
  CHECK(one_line(with("run/state/step-00000004", "f"), 4, "weights.safetensors"));
  const ProgramResult older = with("run", "f");
  CHECK(older.exit_code == 0);
  CHECK(older.err.find("passed over") != std::string::npos);
  CHECK(files_below(w.d / "f") == earlier);
}

TEST_CASE("--plan: the printed plan is run, or refused by the field that differs") {
  const Workplace w;
  const ProgramResult printed = w.run(w.plan({"--recompute", "blocks"}));
  INFO(printed.err);
  REQUIRE(printed.exit_code == 0);
  write(w.d / "p.json", printed.out);
  const std::vector<std::string> with{"--plan", w.d / "p.json"};
  const ProgramResult r = w.run(w.train("run", with));
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  // What the options left open came from the plan.
  const Json plan = parse_json(printed.out, "plan");
  const Json ran = parse_json(content(w.d / "run/plan.json"), "plan");
  CHECK(ran.find("recompute")->as_string() == "blocks");
  for (const char* key : {"group", "recompute", "micro_batches", "workers", "tasks"}) {
    CHECK(ran.find(key)->dump() == plan.find(key)->dump());
  }
  CHECK(content(w.d / "run/config.yaml").find("\nplan: \"") != std::string::npos);
  CHECK(w.run(w.train("run", with)).exit_code == 0);  // finished
  CHECK(w.run(w.plan(with)).exit_code == 0);

  const auto refused = [&](std::vector<std::string> more, int code, const std::string& part) {
    more.insert(more.end(), with.begin(), with.end());
    return one_line(w.run(w.train("other", more)), code, part);
  };
  CHECK(refused({"--recompute", "none"}, 2, "recompute: the plan has"));
  CHECK(refused({"--packing", "off"}, 2, "tokens_per_micro_batch: the plan has"));
  CHECK(refused({"--freeze", "*embed*"}, 2, "the plan has"));
  std::string other = printed.out;
  const auto change = [&](const std::string& from, const std::string& to) {
    other = printed.out;
    const size_t at = other.find(from);
    REQUIRE(at != std::string::npos);
    write(w.d / "p.json", other.replace(at, from.size(), to));
  };
  change("\"workers\": 2", "\"workers\": 1");
  CHECK(refused({}, 2, "workers: the plan has '1'"));
  change("\"micro_batches\": 2", "\"micro_batches\": 3");
  CHECK(refused({}, 2, "micro_batches: the plan has '3', this run would have '2'"));
  change("\"fits\": true", "\"fits\": false");
  CHECK(refused({}, 2, "fits"));
  change("\"group\":", "\"group\": 0, \"was\":");
  CHECK(refused({}, 3, "group: expected a whole number"));
  write(w.d / "p.json", "[]");
  CHECK(refused({}, 3, "no plan"));
  write(w.d / "p.json", "{");
  CHECK(refused({}, 3, "p.json"));
  CHECK_FALSE(fs::exists(w.d / "other"));
}

TEST_CASE("a refused start leaves no run directory behind") {
  const Workplace w;
  const auto refused = [&](const std::vector<std::string>& more, int code) {
    const ProgramResult r = w.run(w.train("deep/er/run", more));
    INFO(r.err);
    CHECK(r.exit_code == code);
    CHECK_FALSE(fs::exists(w.d / "deep"));
    // Nor a lock in a directory that was there.
    fs::create_directory(w.d / "there");
    CHECK(w.run(w.train("there", more)).exit_code == code);
    CHECK(fs::is_empty(w.d / "there"));
  };
  refused({"--freeze", "no.such.tensor"}, 2);
  refused({"--freeze", "*"}, 2);
  refused({"--data", w.d / "missing.jsonl"}, 3);
  refused({"--cpu-memory", "1k"}, 2);
  refused({"--chat-template", w.d / "missing.jinja"}, 2);  // though no row is a chat
  refused({"--resume", w.d / "model"}, 2);
  refused({"--trace", w.d / "missing/trace.json"}, 4);
}

TEST_CASE("trainable and freeze name the glob that matches nothing") {
  const Workplace w;
  CHECK(one_line(w.run(w.train("o", {"--trainable", "*.q_proj.*", "--trainable", "x*y"})), 2,
                 "--trainable 'x*y'"));
  CHECK(one_line(w.run(w.train("o", {"--freeze", "lm_head"})), 2, "--freeze 'lm_head'"));
  CHECK(one_line(w.run(w.train("o", {"--freeze", "model*", "--freeze", "lm_head.weight"})), 2,
                 "nothing is left to train"));
}

TEST_CASE("--eval-data: at the start, every so many steps and at the end") {
  const Workplace w;
  const ProgramResult r = w.run(w.train("run", {"--eval-data", w.d / "eval.jsonl", "--eval-every",
                                                "3", "--eval-at-start", "--log-every", "2"}));
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  std::vector<std::pair<int64_t, double>> losses;
  for (const Json& line : lines_of(w.d / "run/journal.jsonl")) {
    if (line.find("event")->as_string() != "eval") continue;
    losses.emplace_back(line.find("step")->as_int(), line.find("loss")->as_double());
    CHECK(r.err.find("loss " + line.find("loss")->dump()) != std::string::npos);  // console
  }
  REQUIRE(losses.size() == 3);
  CHECK(losses[0].first == 0);
  CHECK(losses[1].first == 3);
  CHECK(losses[2].first == 4);
  // metrics.jsonl has a line for every step, whatever --log-every says.
  CHECK(lines_of(w.d / "run/metrics.jsonl").size() == 4);
  CHECK(r.err.find("step 3/4") == std::string::npos);
  CHECK(r.err.find('\x1b') == std::string::npos);
  CHECK(r.err.find('\r') == std::string::npos);
  for (const auto& [name, text] : files_below(w.d / "run")) {
    if (name.starts_with("events")) CHECK(text.find("eval/loss") != std::string::npos);
  }
  // The losses are those of `eval`, packed or not.
  for (const char* packing : {"on", "off"}) {
    for (const auto& [model, loss] :
         {std::pair("model", losses[0].second), std::pair("run/model", losses[2].second)}) {
      const ProgramResult eval =
          w.run({"eval", "--model", w.d / model, "--data", w.d / "eval.jsonl", "--seq-len", "64",
                 "--packing", packing, "--json", "--compute-dtype", "f32", "--quiet"});
      INFO(eval.err);
      REQUIRE(eval.exit_code == 0);
      CHECK(eval.err.empty());
      const Json json = parse_json(eval.out, "eval");
      // run/model is rounded to bf16, the masters of the run were not.
      const double tolerance = model == std::string("model") ? 1e-6 : 2e-2;
      CHECK(std::abs(json.find("loss")->as_double() - loss) < tolerance * loss);
      CHECK(Json(json.find("loss")->as_double()).dump() == json.find("loss")->dump());
    }
  }
}

TEST_CASE("models of the local hub cache") {
  const Workplace w;
  const std::string repository = w.d / "hub/models--some-org--Tiny.MoE";
  fs::create_directories(repository + "/refs");
  fs::create_directories(repository + "/blobs");
  fs::create_directories(repository + "/snapshots/abc123");
  write(repository + "/refs/main", "abc123\n");
  for (const auto& [name, text] : files_below(w.d / "model")) {
    write(repository + "/blobs/" + name, text);
    fs::create_symlink("../../blobs/" + name, repository + "/snapshots/abc123/" + name);
  }
  ::unsetenv("HF_HUB_CACHE");
  ::setenv("HF_HOME", w.d.path().c_str(), 1);
  const auto eval = [&](const std::string& model) {
    return w.run({"eval", "--model", model, "--data", w.d / "rows.jsonl", "--json"});
  };
  const std::string expected = eval(w.d / "model").out;
  CHECK_FALSE(expected.empty());
  CHECK(eval("some-org/Tiny.MoE").out == expected);
  CHECK(eval("some-org/Tiny.MoE@abc123").out == expected);
  CHECK(eval("some-org/Tiny.MoE@main").out == expected);
  ::setenv("HF_HUB_CACHE", (w.d / "elsewhere").c_str(), 1);  // wins
  CHECK(one_line(eval("some-org/Tiny.MoE"), 3, w.d / "elsewhere/models--some-org--Tiny.MoE"));
  ::unsetenv("HF_HUB_CACHE");
  CHECK(one_line(eval("some-org/other"), 3, "hf download some-org/other"));
  CHECK(one_line(eval("some-org/Tiny.MoE@v2"), 3, "revision v2"));
  CHECK(one_line(eval("../etc"), 3, "../etc"));
  write(repository + "/refs/main", "../../..");
  CHECK(one_line(eval("some-org/Tiny.MoE"), 3, "refs/main"));
  write(repository + "/refs/main", "abc123");
  // A link to somewhere else is none of the cache's.
  fs::remove(repository + "/snapshots/abc123/config.json");
  fs::create_symlink(w.d / "model/config.json", repository + "/snapshots/abc123/config.json");
  CHECK(one_line(eval("some-org/Tiny.MoE"), 3, "--follow-links"));
  ::unsetenv("HF_HOME");
}

TEST_CASE("several problems: a line each, from file and flags") {
  const Workplace w;
  write(w.d / "c.yaml", "learnig_rate: 1\nseq_len: x\n");
  const ProgramResult r = w.run({"train", w.d / "c.yaml", "--epoch", "2"});
  CHECK(r.exit_code == 2);
  INFO(r.err);
  CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 6);
  for (const char* part : {":1: learnig_rate", ":2: seq_len", "--epoch: unknown option",
                           "--model is missing", "--data is missing", "--out is missing"}) {
    CHECK(r.err.find(part) != std::string::npos);
  }
}

TEST_CASE("the date of templates is that of the first start") {
  const Workplace w;
  const auto recorded = [&](std::vector<std::string> more) -> std::string {
    std::vector<std::string> words{"train", "--model",  w.d / "model", "--data", w.d / "rows.jsonl",
                                   "--out", w.d / "run"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramResult r = w.run(words);
    INFO(r.err);
    CHECK(r.exit_code == 0);
    const std::string config = content(w.d / "run/config.yaml");
    const size_t at = config.find("template-date: ");
    return at == std::string::npos ? "" : config.substr(at + 15, 12);
  };
  CHECK(recorded({"--steps", "1", "--template-date", "2020-01-02"}) == "\"2020-01-02\"");
  fs::remove_all(w.d / "run/model");
  CHECK(recorded({"--steps", "2", "--allow-change", "steps"}) == "\"2020-01-02\"");
}
