// eval, generate and export take a run directory as --model.
#include "tools/workplace.h"

using namespace hearth;
using namespace hearth::test;
namespace fs = std::filesystem;

namespace {

struct Runs : Workplace {
  Runs() {
    for (const std::string& method : {std::string("full"), std::string("lora")}) {
      const ProgramResult r = run(train(method, {"--method", method, "--quiet"}));
      INFO(r.err);
      REQUIRE(r.exit_code == 0);
    }
  }
  ProgramResult eval(std::vector<std::string> more) const {
    more.insert(more.begin(), {"eval", "--data", d / "eval.jsonl", "--json", "--threads", "1"});
    return run(more);
  }
  std::string loss(const std::vector<std::string>& more) const {
    const ProgramResult r = eval(more);
    INFO(r.err);
    REQUIRE(r.exit_code == 0);
    return parse_json(r.out, "eval").find("loss")->dump();
  }
  std::string text(std::vector<std::string> more) const {
    more.insert(more.begin(),
                {"generate", "--prompt", "row number", "--max-new-tokens", "12", "--threads", "1"});
    const ProgramResult r = run(more);
    INFO(r.err);
    REQUIRE(r.exit_code == 0);
    return r.out;
  }
};

}  // namespace

TEST_CASE("a run directory as --model: its model, or its adapter on its base") {
  const Runs w;
  const std::string base = w.d / "model", full = w.d / "full", lora = w.d / "lora";
  const std::vector<std::string> adapted{"--model", base, "--adapter", lora + "/adapter"};
  CHECK(w.loss({"--model", full}) == w.loss({"--model", full + "/model"}));
  CHECK(w.loss({"--model", lora}) == w.loss(adapted));
  CHECK(w.loss({"--model", lora}) != w.loss({"--model", base}));
  CHECK(w.loss({"--model", lora + "/"}) == w.loss(adapted));
  CHECK(w.loss({"--model", base, "--adapter", lora}) == w.loss(adapted));
  // The adapter alone names its base.
  CHECK(w.loss({"--adapter", lora}) == w.loss(adapted));
  CHECK(w.loss({"--adapter", lora + "/adapter"}) == w.loss(adapted));
  CHECK(w.loss({"--model", lora + "/adapter"}) == w.loss(adapted));
  CHECK(w.text({"--adapter", lora}) == w.text(adapted));
  CHECK(w.text({"--model", full}) == w.text({"--model", full + "/model"}));
  CHECK(w.text({"--model", lora}) == w.text(adapted));
}

TEST_CASE("export: the adapter of a run, merged into the base that it names") {
  const Runs w;
  const std::string lora = w.d / "lora";
  const auto merged = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"export", "--out", w.d / "merged"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramResult r = w.run(words);
    INFO(r.err);
    REQUIRE(r.exit_code == 0);
    const auto files = files_below(w.d / "merged");
    fs::remove_all(w.d / "merged");
    return files;
  };
  const auto want = merged({"--model", w.d / "model", "--adapter", lora + "/adapter"});
  CHECK(want.at("model.safetensors") != files_below(w.d / "model").at("model.safetensors"));
  CHECK(merged({"--model", lora}) == want);
  CHECK(merged({"--model", lora + "/adapter"}) == want);
  CHECK(merged({"--adapter", lora}) == want);
  CHECK(merged({"--model", w.d / "model", "--adapter", lora}) == want);
  for (const std::string& input : {lora, std::string(w.d / "model")}) {  // the run, and its base
    CHECK(one_line(w.run({"export", "--model", lora, "--out", input + "/merged"}), 2, "lies in"));
  }
  // A run that stopped has no result, and the line says what makes one.
  fs::remove_all(lora + "/adapter");
  CHECK(one_line(w.run({"export", "--model", lora, "--out", w.d / "merged"}), 3, "--from-state"));

  // The base by the name that the user gave: the card names it, and no place of this machine.
  fs::create_directories(w.d / "hub/models--org--base/snapshots");
  fs::create_directories(w.d / "hub/models--org--base/refs");
  write(w.d / "hub/models--org--base/refs/main", "abc");
  fs::copy(w.d / "model", w.d / "hub/models--org--base/snapshots/abc", fs::copy_options::recursive);
  REQUIRE(setenv("HF_HUB_CACHE", (w.d / "hub").c_str(), 1) == 0);
  std::vector<std::string> words = w.train("named", {"--method", "lora", "--quiet"});
  words[2] = "org/base";
  REQUIRE(w.run(words).exit_code == 0);
  const auto named = merged({"--model", w.d / "named"});
  CHECK(named.at("model.safetensors") == want.at("model.safetensors"));
  CHECK(named.at("README.md").find("base_model: \"org/base\"") != std::string::npos);
  CHECK(named.at("README.md").find(w.d.path()) == std::string::npos);
  unsetenv("HF_HUB_CACHE");
}

TEST_CASE("a run directory as --model: without a result, a base, or beside another adapter") {
  const Runs w;
  const std::string full = w.d / "full", lora = w.d / "lora";
  CHECK(one_line(w.eval({"--model", lora, "--adapter", lora + "/adapter"}), 2,
                 "this run has an adapter of its own"));
  fs::rename(w.d / "model", w.d / "moved");
  CHECK(one_line(w.eval({"--model", lora}), 3, "its base"));
  CHECK(one_line(w.eval({"--adapter", lora}), 3, "its base"));
  CHECK(one_line(w.eval({}), 2, "--model is missing"));
  CHECK(one_line(w.eval({"--adapter", w.d / "none"}), 3, "adapter_config.json"));
  fs::rename(w.d / "moved", w.d / "model");
  fs::remove_all(full + "/model");
  CHECK(one_line(w.eval({"--model", full}), 3, "this run has no result yet"));
  // A folder that no run left is a model that lacks its files.
  fs::create_directories(w.d / "none/model");
  CHECK(one_line(w.eval({"--model", w.d / "none"}), 3, "config.json"));
}
