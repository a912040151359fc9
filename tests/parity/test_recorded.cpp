// The program beside transformers and torch.optim.AdamW, without Python: what they made of the
// recorded cases is in tests/golden/parity.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "base/file_ops.h"
#include "parity/recorded_run.h"
#include "support/temporary_directory.h"

namespace hearth::test {
namespace {

Json evaluate(const RecordedCase& c, const std::string& model) {
  return parse_json(
      run_case(c, {"eval", "--model", model, "--data", c.rows(), "--json", "--packing", "off"},
               {"micro_batch", "seq_len", "aux_loss_mode", "compute_dtype"}),
      "eval");
}

void check_evaluation(const RecordedCase& c, const std::string& key, const std::string& model) {
  const Json actual = evaluate(c, model);
  const Json& expected = *c.expected.find(key);
  for (const char* name : {"loss", "aux_loss"}) {
    check_close("eval " + key + " " + name, actual.find(name)->as_double(),
                expected.find(name)->as_double(), 1e-5);
  }
  for (const char* name : {"tokens", "trained_tokens"}) {
    CHECK(actual.find(name)->as_int() == expected.find(name)->as_int());
  }
}

void check_steps(const RecordedCase& c, const std::string& out) {
  const std::vector<Json> lines = read_metrics(out);
  const JsonArray& steps = c.expected.find("steps")->as_array();
  REQUIRE(lines.size() == steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto check = [&](const char* name, double tolerance) {
      check_close("step " + std::to_string(i + 1) + " " + name, lines[i].find(name)->as_double(),
                  steps[i].find(name)->as_double(), tolerance);
    };
    for (const char* name : {"step", "tokens", "trained_tokens"}) check(name, 0);
    check("lr", 1e-12);
    check("loss", 1e-5);
    check("aux_loss", 1e-5);
    check("grad_norm", 1e-4);
    const JsonArray& load = steps[i].find("expert_load")->as_array();
    const JsonArray& actual = lines[i].find("expert_load")->as_array();
    REQUIRE(actual.size() == load.size());
    for (size_t l = 0; l < load.size(); ++l) {
      check_close("expert_load", actual[l].as_double(), load[l].as_double(), 1e-12);
    }
  }
}

/// One step over all rows as one micro-batch: each its own sequence, and packed into one.
void check_packed(const RecordedCase& c, const TemporaryDirectory& directory) {
  const std::string rows = std::to_string(std::ranges::count(read_file(c.rows()), '\n'));
  const auto step = [&](const std::string& packing, const std::string& sequences) {
    const std::string out = directory / ("packing-" + packing);
    run_case(c,
             {"train", "--model", c.model(), "--data", c.rows(), "--out", out, "--packing", packing,
              "--micro-batch", sequences, "--seq-len", "512", "--steps", "1", "--shuffle", "off",
              "--quiet"},
             {"router_aux_loss", "aux_loss_mode"});
    return read_metrics(out).at(0);
  };
  const Json apart = step("off", rows), packed = step("on", "1");
  for (const char* name : {"tokens", "trained_tokens"}) {
    CHECK(packed.find(name)->as_int() == apart.find(name)->as_int());
  }
  for (const char* name : {"loss", "aux_loss", "grad_norm"}) {
    check_close(std::string("packed ") + name, packed.find(name)->as_double(),
                apart.find(name)->as_double(), 1e-6);
  }
}

/// What training changed: final values less those of the checkpoint.
struct Update {
  std::string tensor;
  Elements actual, expected;
};

/// The whole update of every tensor, from the masters of the saved state.
std::vector<Update> read_updates(const RecordedCase& c, const std::string& out) {
  const auto start = read_directory_tensors(c.model());
  const auto masters = read_tensors(out + "/state/step-00000012/weights.safetensors");
  std::vector<Update> updates;
  for (const auto& [key, expected] : c.tensors) {
    if (!key.starts_with("final.")) continue;
    const std::string name = key.substr(6);
    REQUIRE(start.contains(name));
    REQUIRE(masters.contains(name));
    Update update{name, masters.at(name), expected};
    REQUIRE(update.actual.size() == expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      update.actual[i] -= start.at(name)[i];
      update.expected[i] -= start.at(name)[i];
    }
    updates.push_back(std::move(update));
  }
  CHECK(updates.size() == start.size());
  return updates;
}

void check_updates(const RecordedCase& c, const std::string& out) {
  for (const Update& update : read_updates(c, out)) {
    const double error = relative_error(update.actual, update.expected);
    INFO(update.tensor << ": update differs by " << error);
    CHECK(error <= 1e-3);
  }
}

/// Root mean square of the relative errors of a key over the steps.
double step_error(const RecordedCase& c, const std::string& out, const char* key) {
  const std::vector<Json> lines = read_metrics(out);
  const JsonArray& steps = c.expected.find("steps")->as_array();
  REQUIRE(lines.size() == steps.size());
  double squares = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const double error =
        relative_error(lines[i].find(key)->as_double(), steps[i].find(key)->as_double());
    squares += error * error;
  }
  return std::sqrt(squares / static_cast<double>(steps.size()));
}

/// `error` against f64 beside the one that torch made in bf16.
void check_beside_torch(const RecordedCase& c, const char* kind, double error) {
  const double torch = std::sqrt(c.expected.find("torch_bf16")->find(kind)->as_double());
  INFO(c.name << ' ' << kind << ": error " << error << ", of torch " << torch);
  CHECK(error <= 1.2 * torch);
}

void check_runs(const std::vector<RecordedCase>& cases) {
  REQUIRE(cases.size() >= 6);
  for (const RecordedCase& c : cases) {
    if (c.computes_bf16()) continue;
    DYNAMIC_SECTION(c.name) {
      const TemporaryDirectory directory;
      const std::string out = directory / "run";
      check_evaluation(c, "before", c.model());
      train_case(c, out);
      check_steps(c, out);
      check_updates(c, out);
      check_evaluation(c, "after", out + "/model");
      check_packed(c, directory);
    }
  }
}

void check_runs_in_bf16(const std::vector<RecordedCase>& cases) {
  int compared = 0;
  for (const RecordedCase& c : cases) {
    if (!c.computes_bf16()) continue;
    ++compared;
    DYNAMIC_SECTION(c.name) {
      const TemporaryDirectory directory;
      const std::string out = directory / "run";
      train_case(c, out);
      check_beside_torch(c, "loss", step_error(c, out, "loss"));
      check_beside_torch(c, "grad_norm", step_error(c, out, "grad_norm"));
      Elements actual, expected;  // of all tensors together
      for (const Update& update : read_updates(c, out)) {
        actual.insert(actual.end(), update.actual.begin(), update.actual.end());
        expected.insert(expected.end(), update.expected.begin(), update.expected.end());
      }
      check_beside_torch(c, "update", relative_error(actual, expected));
    }
  }
  CHECK(compared > 0);
}

}  // namespace

TEST_CASE("Recorded runs of transformers and AdamW are repeated") { check_runs(recorded_cases()); }

TEST_CASE("Training in bf16 strays from f64 no farther than torch does") {
  check_runs_in_bf16(recorded_cases());
}

TEST_CASE("A GPU repeats recorded runs of transformers and AdamW") {
  check_runs(on_a_gpu(recorded_cases()));
}

TEST_CASE("A GPU in bf16 strays from f64 no farther than torch does") {
  check_runs_in_bf16(on_a_gpu(recorded_cases()));
}

}  // namespace hearth::test
