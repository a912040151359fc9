// The built program on a small model: what a user gets from train, eval and their options.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include "support/isa.h"
#include "tools/workplace.h"

using namespace hearth;
using namespace hearth::test;
namespace fs = std::filesystem;

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
  // `auto` is f32 under one instruction set and bf16 under another: train and eval agree on each.
  const std::vector<std::string> isas =
      isas_of_machine([&] { return w.run({"--version"}).exit_code == 0; });
  const std::string isa_name = GENERATE_COPY(from_range(isas));
  INFO("HEARTH_ISA=" << isa_name);
  const WithVariable isa("HEARTH_ISA", isa_name);
  const ProgramResult r = w.run(w.train("run", {"--eval-data", w.d / "eval.jsonl", "--eval-every",
                                                "3", "--eval-at-start", "--log-every", "2"}));
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  std::vector<std::pair<int64_t, double>> losses;
  for (const Json& line : lines_of(w.d / "run/journal.jsonl")) {
    if (line.find("event")->as_string() != "eval") continue;
    losses.emplace_back(line.find("step")->as_int(), line.find("loss")->as_double());
    char shown[32];  // as training losses are
    std::snprintf(shown, sizeof shown, "loss %.4f", line.find("loss")->as_double());
    CHECK(r.err.find(shown) != std::string::npos);  // console
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
                 "--packing", packing, "--json", "--quiet"});
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
