// Training of adapters beside the real PEFT and torch.optim.AdamW, without Python: what they made of
// the recorded cases is in tests/golden/lora (scripts/parity/lora.py).
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>

#include "support/planted.h"
#include "support/stored_tensors.h"
#include "train/export.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

struct LoraCase {
  std::string name, directory;
  Json train, lora, expected;
};

std::vector<LoraCase> lora_cases() {
  const std::string root = HEARTH_TEST_DATA "/lora";
  std::vector<LoraCase> cases;
  for (const std::string& name : list_directory(root)) {
    const std::string directory = root + "/" + name;
    const Json json = parse_json(read_file(directory + "/case.json"), "case.json");
    cases.push_back({name, directory, *json.find("train"), *json.find("lora"),
                     parse_json(read_file(directory + "/expected.json"), "expected.json")});
  }
  return cases;
}

std::vector<std::string> texts(const Json& list) {
  std::vector<std::string> out;
  for (const Json& text : list.as_array()) out.push_back(text.as_string());
  return out;
}

TrainConfig config_of(const LoraCase& c, const std::string& out) {
  const auto number = [&](const char* key) { return c.train.find(key)->as_double(); };
  const auto count = [&](const char* key) { return c.train.find(key)->as_int(); };
  TrainConfig config;
  config.model = c.directory + "/model";
  config.data = {c.directory + "/rows.jsonl"};
  config.out = out;
  config.packing = config.shuffle = false;
  config.threads = 1;
  config.data_cache = 0;
  config.compute = ComputeChoice::f32;
  config.aux_mode = AuxLossMode::hf;
  config.steps = count("steps");
  config.micro_batch = count("micro_batch");
  config.grad_accum = count("grad_accum");
  config.seq_len = count("seq_len");
  config.warmup = count("warmup");
  config.lr = number("lr");
  config.weight_decay = number("weight_decay");
  config.beta1 = number("beta1");
  config.beta2 = number("beta2");
  config.eps = number("eps");
  config.max_grad_norm = number("max_grad_norm");
  config.router_aux_loss = number("router_aux_loss");
  config.method = Method::lora;
  config.lora_targets = texts(*c.lora.find("targets"));
  config.lora_rank = c.lora.find("rank")->as_int();
  config.expert_rank = c.lora.find("expert_rank")->as_int();
  config.lora_alpha = c.lora.find("alpha")->as_double();
  config.rslora = c.lora.find("rslora")->as_bool();
  config.trainable = texts(*c.lora.find("trainable"));
  if (c.lora.find("fused")->as_bool()) config.adapter_layout = AdapterLayout::fused;
  return config;
}

void check_close(const std::string& what, double actual, double expected, double tolerance) {
  INFO(what << ": " << actual << " instead of " << expected);
  CHECK(std::abs(actual - expected) <= tolerance * std::abs(expected));
}

void check_steps(const LoraCase& c, const std::vector<StepMetrics>& steps) {
  const JsonArray& expected = c.expected.find("steps")->as_array();
  REQUIRE(steps.size() == expected.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto value = [&](const char* key) { return expected[i].find(key)->as_double(); };
    const std::string step = "step " + std::to_string(i + 1) + " ";
    check_close(step + "loss", steps[i].loss, value("loss"), 1e-5);
    check_close(step + "aux_loss", steps[i].aux_loss, value("aux_loss"), 1e-5);
    check_close(step + "grad_norm", steps[i].grad_norm, value("grad_norm"), 1e-4);
  }
}

using Values = std::vector<double>;

std::map<std::string, Values> values_of(const std::string& file) {
  std::map<std::string, Values> out;
  for (const StoredTensor& tensor : load(file)) {
    Values& values = out[tensor.entry.name];
    for (size_t at = 0; at < tensor.data.size(); at += sizeof(float)) {
      float value = 0;
      std::memcpy(&value, tensor.data.data() + at, sizeof value);
      values.push_back(value);
    }
  }
  return out;
}

double norm(const Values& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

Values difference(const Values& a, const Values& b) {
  REQUIRE(a.size() == b.size());
  Values out(a.size());
  for (size_t i = 0; i < a.size(); ++i) out[i] = a[i] - b[i];
  return out;
}

/// What training added to each tensor, as `merged` holds it, against PEFT's merge.
void check_merged(const LoraCase& c, const std::string& merged) {
  const auto start = values_of(c.directory + "/model/model.safetensors");
  const auto expected = values_of(c.directory + "/expected.safetensors");
  const auto actual = values_of(merged + "/model.safetensors");
  CHECK(actual.size() == start.size());
  int changed = 0;
  for (const auto& [name, before] : start) {
    const Values& theirs = expected.at("merged." + name);
    const double update = norm(difference(theirs, before));
    const double error = norm(difference(actual.at(name), theirs));
    INFO(name << ": update " << update << ", error " << error);
    // f32 weights hold what was added to a few ten-millionths of themselves.
    CHECK(error <= 1e-3 * update + (update > 0 ? 1e-7 * norm(before) : 0));
    changed += update > 0;
  }
  CHECK(changed > 0);
}

}  // namespace

TEST_CASE("recorded adapters: 12 steps of PEFT and AdamW are repeated") {
  const PlantedFault quick("machine-not-measured");
  register_all_op_sets();
  const std::vector<LoraCase> cases = lora_cases();
  CHECK(cases.size() == 4);
  for (const LoraCase& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const TemporaryDirectory directory;
      TrainConfig config = config_of(c, directory / "run");
      RecordingReporter reporter;
      REQUIRE(train(config, reporter) == ExitCode::done);
      check_steps(c, reporter.steps);
      config.adapter = directory / "run/adapter";
      const double after = c.expected.find("after")->find("loss")->as_double();
      check_close("eval --adapter", evaluate(config, reporter).find("loss")->as_double(), after,
                  1e-5);
      export_merged({config.model, config.adapter, directory / "merged"}, reporter);
      check_merged(c, directory / "merged");
    }
  }
}

}  // namespace hearth::test
