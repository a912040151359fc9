// LoRA+: B of adapters has a learning rate of its own. NEFTune: noise on embeddings in training.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <map>

#include "checkpoint/safetensors.h"
#include "record/journal.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

using NamedWeights = std::map<std::string, std::vector<float>>;

/// A component of the state of a step.
NamedWeights component(const TrainingFixture& f, const std::string& out, const std::string& step,
                       const std::string& name) {
  const SafetensorsFile file(f.dir / (out + "/state/step-" + step + "/" + name + ".safetensors"));
  NamedWeights all;
  for (const SafetensorsEntry& entry : file.header().entries) {
    std::vector<float>& values = all[entry.name];
    values.resize((entry.end - entry.begin) / sizeof(float));
    file.read(entry, values.data(), entry.end - entry.begin, 0);
  }
  return all;
}

TrainConfig lora(const TrainingFixture& f, const std::string& out, double ratio) {
  TrainConfig c = f.config(out);
  c.method = Method::lora;
  c.lora_plus_ratio = ratio;
  c.lora_rank = 3;
  c.lora_targets = {"attention", "experts"};
  c.steps = 4;
  c.warmup = 0;
  c.lr_schedule = LrSchedule::constant;
  c.save_every.steps = 1;
  c.keep = 9;
  return c;
}

/// AdamW in double, as torch.optim.AdamW computes it from the moments of the step.
double adamw(const TrainConfig& c, double w, double m, double v, int64_t step, double rate) {
  const double c1 = 1 - std::pow(c.beta1, static_cast<double>(step));
  const double c2 = 1 - std::pow(c.beta2, static_cast<double>(step));
  return w - rate * c.weight_decay * w - rate * (m / c1) / (std::sqrt(v / c2) + c.eps);
}

TEST_CASE("LoRA+: AdamW with the rate of B times the ratio, and that of A as it is") {
  TrainingFixture f;
  const double ratio = 5;
  const TrainConfig config = lora(f, "plus", ratio);
  REQUIRE(f.run(config) == ExitCode::done);
  double of_a = 0, of_b = 0;  // largest steps, so that the test sees both
  for (int64_t step = 2; step <= 4; ++step) {
    const std::string now = "0000000" + std::to_string(step);
    const NamedWeights before =
        component(f, "plus", "0000000" + std::to_string(step - 1), "weights");
    const NamedWeights after = component(f, "plus", now, "weights");
    const NamedWeights m = component(f, "plus", now, "moment1"),
                       v = component(f, "plus", now, "moment2");
    for (const auto& [name, w] : before) {
      const bool is_b = name.find("lora_B") != std::string::npos;
      REQUIRE((is_b || name.find("lora_A") != std::string::npos));
      const double rate = config.lr * (is_b ? ratio : 1);
      double worst = 0, largest = 0;
      for (size_t i = 0; i < w.size(); ++i) {
        const double expected = adamw(config, w[i], m.at(name)[i], v.at(name)[i], step, rate);
        worst = std::max(worst, std::abs(after.at(name)[i] - expected));
        largest = std::max(largest, std::abs(double{after.at(name)[i]} - w[i]));
      }
      INFO(name << " at step " << step);
      CHECK(worst < 1e-6);
      (is_b ? of_b : of_a) = std::max(is_b ? of_b : of_a, largest);
    }
  }
  CHECK(of_a > 1e-3);
  CHECK(of_b > 3 * of_a);
}

TEST_CASE("LoRA+: a ratio of 1 changes no bit, a resume neither") {
  TrainingFixture f;
  REQUIRE(f.run(lora(f, "one", 1)) == ExitCode::done);
  TrainConfig usual = lora(f, "usual", 1);
  usual.lora_plus_ratio = TrainConfig().lora_plus_ratio;
  REQUIRE(f.run(usual) == ExitCode::done);
  CHECK(f.root("one") == f.root("usual"));
  REQUIRE(f.run(lora(f, "plus", 5)) == ExitCode::done);
  CHECK(f.root("plus") != f.root("one"));
  REQUIRE(f.run_until(lora(f, "stopped", 5), 2) == ExitCode::stopped);
  REQUIRE(f.run(lora(f, "stopped", 5)) == ExitCode::done);
  CHECK(f.root("stopped") == f.root("plus"));
  CHECK(f.result("stopped") == f.result("plus"));
}

TrainConfig noisy(const TrainingFixture& f, const std::string& out, double alpha) {
  TrainConfig c = f.config(out);
  c.neftune = alpha;
  c.eval_data = c.data;
  c.eval_at_start = true;
  return c;
}

double loss_before(const TrainingFixture& f, const std::string& out) {
  return *read_journaled_run(f.dir / (out + "/journal.jsonl")).loss_at(0);
}

TEST_CASE("NEFTune: training has noise, evaluation has not") {
  TrainingFixture f;
  for (const auto& [out, alpha] : {std::pair{"none", 0.0}, {"some", 5.0}, {"more", 50.0}}) {
    REQUIRE(f.run(noisy(f, out, alpha)) == ExitCode::done);
  }
  CHECK(loss_before(f, "some") == loss_before(f, "none"));
  CHECK(loss_before(f, "more") == loss_before(f, "none"));
  const auto first_loss = [&](const std::string& out) {
    return parse_json(f.lines(out + "/metrics.jsonl")[0], out).find("loss")->as_double();
  };
  CHECK(first_loss("some") != first_loss("none"));
  CHECK(std::abs(first_loss("some") - first_loss("none")) < 0.2);
  CHECK(f.root("some") != f.root("none"));
  CHECK(f.root("some") != f.root("more"));
}

TEST_CASE("NEFTune: a resume, other threads, devices and recomputation have the same bits") {
  TrainingFixture f;
  REQUIRE(f.run(noisy(f, "whole", 5)) == ExitCode::done);
  REQUIRE(f.run_until(noisy(f, "stopped", 5), 3) == ExitCode::stopped);
  REQUIRE(f.run(noisy(f, "stopped", 5)) == ExitCode::done);
  CHECK(f.root("stopped") == f.root("whole"));
  TrainConfig other = noisy(f, "other", 5);
  other.threads = 1;
  other.recompute = Recompute::blocks;
  REQUIRE(f.run(other) == ExitCode::done);
  CHECK(f.root("other") == f.root("whole"));
  TrainConfig two = noisy(f, "two", 5);
  two.devices = "2xvirtual,host";
  REQUIRE(f.run(two) == ExitCode::done);
  CHECK(f.root("two") == f.root("whole"));
  TrainConfig seed = noisy(f, "seed", 5);
  seed.shuffle = false;
  TrainConfig seed2 = noisy(f, "seed2", 5);
  seed2.shuffle = false;
  seed2.seed = 7;
  REQUIRE(f.run(seed) == ExitCode::done);
  REQUIRE(f.run(seed2) == ExitCode::done);
  CHECK(f.root("seed") != f.root("seed2"));
}

}  // namespace
}  // namespace hearth::test
