// Training of adapters beside the real PEFT and torch.optim.AdamW, without Python: what they made of
// the recorded cases is in tests/golden/lora (scripts/parity/lora.py).
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "parity/recorded_run.h"
#include "support/temporary_directory.h"

namespace hearth::test {
namespace {

/// The options that make the case's adapter.
std::vector<std::string> adapter_words(const RecordedCase& c) {
  const auto list = [&](const char* key) {
    std::vector<std::string> texts;
    for (const Json& text : c.lora.find(key)->as_array()) texts.push_back(text.as_string());
    return texts;
  };
  std::string targets;
  for (const std::string& target : list("targets"))
    targets += (targets.empty() ? "" : ",") + target;
  std::vector<std::string> words = {"--method", "lora", "--lora-targets", targets};
  for (const auto& [flag, key] :
       {std::pair{"--lora-r", "rank"}, {"--expert-r", "expert_rank"}, {"--lora-alpha", "alpha"}}) {
    words.insert(words.end(), {flag, c.lora.find(key)->dump()});
  }
  if (c.lora.find("rslora")->as_bool()) words.emplace_back("--rslora");
  for (const std::string& glob : list("trainable")) {
    words.insert(words.end(), {"--trainable", glob});
  }
  if (c.lora.find("fused")->as_bool()) words.insert(words.end(), {"--adapter-layout", "fused"});
  return words;
}

void check_steps(const RecordedCase& c, const std::vector<Json>& steps) {
  const JsonArray& expected = c.expected.find("steps")->as_array();
  REQUIRE(steps.size() == expected.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto check = [&](const char* name, double tolerance) {
      check_close("step " + std::to_string(i + 1) + " " + name, steps[i].find(name)->as_double(),
                  expected[i].find(name)->as_double(), tolerance);
    };
    check("loss", 1e-5);
    check("aux_loss", 1e-5);
    check("grad_norm", 1e-4);
  }
}

double norm(const Elements& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

Elements difference(const Elements& a, const Elements& b) {
  REQUIRE(a.size() == b.size());
  Elements out(a.size());
  for (size_t i = 0; i < a.size(); ++i) out[i] = a[i] - b[i];
  return out;
}

/// What training added to each tensor, as `merged` holds it, against PEFT's merge.
void check_merged(const RecordedCase& c, const std::string& merged) {
  const auto start = read_directory_tensors(c.model());
  const auto actual = read_directory_tensors(merged);
  CHECK(actual.size() == start.size());
  int changed = 0;
  for (const auto& [name, before] : start) {
    const Elements& theirs = c.tensors.at("merged." + name);
    const double update = norm(difference(theirs, before));
    const double error = norm(difference(actual.at(name), theirs));
    INFO(name << ": update " << update << ", error " << error);
    // f32 weights hold what was added to a few ten-millionths of themselves.
    CHECK(error <= 1e-3 * update + (update > 0 ? 1e-7 * norm(before) : 0));
    changed += update > 0;
  }
  CHECK(changed > 0);
}

void check_adapters(const std::vector<RecordedCase>& cases) {
  CHECK(cases.size() == 4);
  for (const RecordedCase& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const TemporaryDirectory directory;
      const std::string out = directory / "run", adapter = out + "/adapter";
      train_case(c, out, adapter_words(c));
      check_steps(c, read_metrics(out));
      const Json evaluation =
          parse_json(run_case(c,
                              {"eval", "--model", c.model(), "--adapter", adapter, "--data",
                               c.rows(), "--json", "--packing", "off"},
                              {"micro_batch", "seq_len", "aux_loss_mode", "compute_dtype"}),
                     "eval");
      check_close("eval --adapter", evaluation.find("loss")->as_double(),
                  c.expected.find("after")->find("loss")->as_double(), 1e-5);
      export_case(c, adapter, directory / "merged");
      check_merged(c, directory / "merged");
    }
  }
}

}  // namespace

TEST_CASE("Recorded adapters of PEFT and AdamW are repeated") {
  check_adapters(recorded_lora_cases());
}

TEST_CASE("A GPU repeats recorded adapters of PEFT and AdamW") {
  check_adapters(on_a_gpu(recorded_lora_cases()));
}

}  // namespace hearth::test
