// Training from fused experts: the bits of the twin whose experts are stored one by one; results and
// globs go by the names of the base.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "support/stored_tensors.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

/// The fixture's base has a twin "fused".
class FusedFixture : public TrainingFixture {
 public:
  FusedFixture() {
    std::filesystem::copy(dir / "base", dir / "fused");
    edit(dir / "fused", [](auto& tensors) { fuse(tensors); });
  }
  TrainConfig fused(const std::string& out) const {
    TrainConfig c = config(out);
    c.model = dir / "fused";
    return c;
  }
};

/// The tensors of a result by name; those of `one_by_one` are fused first.
std::map<std::string, std::string> tensors_of(const std::string& model, bool one_by_one) {
  std::vector<StoredTensor> tensors = load(model + "/model.safetensors");
  if (one_by_one) fuse(tensors);
  std::map<std::string, std::string> out;
  for (const StoredTensor& tensor : tensors) out[tensor.entry.name] = tensor.data;
  return out;
}

TEST_CASE("fused base: training, stopping and resuming give the twin's bits") {
  FusedFixture f;
  for (const ComputeChoice compute : {ComputeChoice::f32, ComputeChoice::bf16}) {
    const std::string type = compute == ComputeChoice::f32 ? "-f32" : "-bf16";
    const std::string twin = "twin" + type, whole = "whole" + type;
    for (TrainConfig config : {f.config(twin), f.fused(whole)}) {
      config.compute = compute;
      REQUIRE(f.run(config) == ExitCode::done);
    }
    CHECK(f.root(whole) == f.root(twin));
    CHECK(f.lines(whole + "/metrics.jsonl").size() == 8);
    CHECK(tensors_of(f.dir / (whole + "/model"), false) ==
          tensors_of(f.dir / (twin + "/model"), true));
    CHECK(Checkpoint(f.dir / (whole + "/model")).layout().experts() == ExpertLayout::fused);
    CHECK(Checkpoint(f.dir / (twin + "/model")).layout().experts() == ExpertLayout::per_expert);
  }
  TrainConfig parts = f.fused("parts");
  parts.compute = ComputeChoice::f32;
  REQUIRE(f.run_until(parts, 3) == ExitCode::stopped);
  REQUIRE(f.run_until(parts, 6) == ExitCode::stopped);
  REQUIRE(f.run(parts) == ExitCode::done);
  CHECK(f.root("parts") == f.root("twin-f32"));
  CHECK(tensors_of(f.dir / "parts/model", false) == tensors_of(f.dir / "twin-f32/model", true));
}

TEST_CASE("fused base: evaluation gives the twin's loss") {
  const FusedFixture f;
  RecordingReporter reporter;
  CHECK(evaluate(f.fused("x"), reporter).dump() == evaluate(f.config("x"), reporter).dump());
}

TEST_CASE("fused base: a glob of a fused tensor means all its experts") {
  FusedFixture f;
  TrainConfig fused = f.fused("fused-run"), twin = f.config("twin-run");
  fused.freeze = {"*.experts.gate_up_proj"};
  twin.freeze = {"*.experts.*.gate_proj.weight", "*.experts.*.up_proj.weight"};
  REQUIRE(f.run(fused) == ExitCode::done);
  REQUIRE(f.run(twin) == ExitCode::done);
  CHECK(f.root("fused-run") == f.root("twin-run"));
  const auto before = tensors_of(f.dir / "fused", false);
  const auto after = tensors_of(f.dir / "fused-run/model", false);
  const std::string prefix = "model.layers.1.mlp.experts.";
  CHECK(before.at(prefix + "gate_up_proj") == after.at(prefix + "gate_up_proj"));
  CHECK(before.at(prefix + "down_proj") != after.at(prefix + "down_proj"));

  // Names of the other layout match nothing.
  TrainConfig wrong = f.fused("wrong");
  wrong.freeze = {"*.experts.0.*"};
  const Raised raised = raised_by([&] { f.run(wrong); });
  CHECK(raised.code == ExitCode::usage);
  CHECK(raised.says("*.experts.0.*"));
}

TEST_CASE("fused base: a state of the twin is another model's") {
  FusedFixture f;
  REQUIRE(f.run_until(f.config("run"), 3) == ExitCode::stopped);
  CHECK(raised_by([&] { f.run(f.fused("run")); }).code == ExitCode::input);
  TrainConfig allowed = f.fused("run");
  allowed.recorded.push_back({"model", allowed.model, false});  // another path than before
  allowed.allow_change = {"model"};
  REQUIRE(f.run(allowed) == ExitCode::done);
  REQUIRE(f.run(f.config("whole")) == ExitCode::done);
  CHECK(f.root("run") == f.root("whole"));
}

}  // namespace
}  // namespace hearth::test
