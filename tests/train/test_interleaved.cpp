// Pipelines with several stages on each device: when plans have them, and their bits.
#include <catch2/catch_test_macros.hpp>

#include "base/sanitized.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

/// A model that is deep enough, and whose head takes little of its time.
struct DeepFixture : TrainingFixture {
  DeepFixture() {
    write(dir / "deep.json", R"({"architectures":["Qwen3MoeForCausalLM"],
      "model_type":"qwen3_moe","vocab_size":259,"hidden_size":32,"num_hidden_layers":8,
      "num_attention_heads":2,"num_key_value_heads":1,"head_dim":16,"intermediate_size":40,
      "moe_intermediate_size":96,"num_experts":6,"num_experts_per_tok":4,"norm_topk_prob":true,
      "decoder_sparse_step":1,"mlp_only_layers":[],"hidden_act":"silu",
      "max_position_embeddings":128,"rms_norm_eps":1e-6,"rope_theta":10000.0,
      "tie_word_embeddings":false,"torch_dtype":"bfloat16","router_aux_loss_coef":0.01})");
    init_checkpoint(dir / "deep.json", dir / "deep", 5, dir / "tokenizer");
  }

  TrainConfig deep(const std::string& out, const std::string& devices) const {
    TrainConfig c = config(out);
    c.model = dir / "deep";
    c.devices = devices;
    c.steps = 3;
    return c;
  }
};

/// "virtual:0 virtual:1 ...", of the stages in forward order.
std::string devices_of_stages(const Json& plan) {
  std::string devices;
  for (const Json& stage : plan.find("stages")->as_array()) {
    devices += (devices.empty() ? "" : " ") + stage.find("device")->as_string();
  }
  return devices;
}

constexpr const char* kTwoEach = "virtual:0 virtual:1 virtual:0 virtual:1";
constexpr const char* kOneEach = "virtual:0 virtual:1";

TEST_CASE("interleaved: devices have several stages where they would wait long else") {
  const DeepFixture f;
  const auto stages = [&](auto&& change) {
    TrainConfig config = f.deep("x", "2xvirtual");
    change(config);
    unbind_thread();
    return devices_of_stages(plan_of(config).json);
  };
  CHECK(stages([](TrainConfig&) {}) == kTwoEach);
  CHECK(stages([](TrainConfig& c) { c.devices = "2xvirtual,host"; }) == kTwoEach);
  CHECK(stages([](TrainConfig& c) { c.recompute = Recompute::blocks; }) == kTwoEach);
  // 20 micro-batches leave two devices waiting for a twentieth of the time.
  CHECK(stages([](TrainConfig& c) { c.grad_accum = 20; }) == kOneEach);
  // Eight layers are four stages of two, not six.
  CHECK(stages([](TrainConfig& c) { c.devices = "3xvirtual"; }) == "virtual:0 virtual:1 virtual:2");
}

TEST_CASE("interleaved: devices that cannot hold all micro-batches have a stage each") {
  const DeepFixture f;
  const auto planned = [&](uint64_t memory, const std::string& beside = "") {
    const std::string device = "virtual:mem=" + std::to_string(memory);
    TrainConfig config = f.deep("x", device + "," + device + beside);
    config.grad_accum = 6;
    unbind_thread();
    return plan_of(config).json;
  };
  const Json ample = planned(uint64_t{1} << 30);
  REQUIRE(devices_of_stages(ample) == kTwoEach);
  CHECK(ample.find("group")->as_int() == 6);
  uint64_t peak = 0;
  for (const Json& place : ample.find("memory")->as_array()) {
    if (place.find("place")->as_string() == "host") continue;
    peak = std::max(peak, static_cast<uint64_t>(place.find("peak_bytes")->as_int()));
  }
  CHECK(devices_of_stages(planned(peak)) == kTwoEach);
  const Json tight = planned(peak * 3 / 4);
  CHECK(devices_of_stages(tight) == kOneEach);
  CHECK(tight.find("fits")->as_bool());
  CHECK(devices_of_stages(planned(peak, ",host")) == kTwoEach);
  CHECK(devices_of_stages(planned(peak / 2, ",host")) == kOneEach);  // the host has some experts
}

TEST_CASE("interleaved: the bits are those of the host, and a resume may change the devices") {
  DeepFixture f;
  for (const bool adapters : {false, true}) {
    if (kSanitized && !adapters) continue;
    const std::string kind = adapters ? "-adapters" : "-all";
    const auto config = [&](const std::string& name, const std::string& devices) {
      TrainConfig c = f.deep(name + kind, devices);
      if (adapters) {
        c.method = Method::lora;
        c.lora_dropout = 0.2;
        c.recorded.push_back({"method", "lora", false});
      }
      return c;
    };
    REQUIRE(f.run(config("host", "host")) == ExitCode::done);
    const std::string expected = f.root("host" + kind);
    for (const std::string list : {"2xvirtual", "2xvirtual,host"}) {
      INFO(list << kind);
      REQUIRE(f.run(config(list, list)) == ExitCode::done);
      CHECK(f.root(list + kind) == expected);
      const std::string at = f.dir / (list + kind + "/plan.json");
      CHECK(devices_of_stages(parse_json(read_file(at), at)) == kTwoEach);
    }
    TrainConfig parts = config("parts", "2xvirtual");
    REQUIRE(f.run_until(parts, 1) == ExitCode::stopped);
    parts.devices = "host";
    REQUIRE(f.run_until(parts, 2) == ExitCode::stopped);
    parts.devices = "2xvirtual";
    REQUIRE(f.run(parts) == ExitCode::done);
    CHECK(f.root("parts" + kind) == expected);
  }
}

TEST_CASE("interleaved: a plan file keeps its stages") {
  DeepFixture f;
  TrainConfig config = f.deep("by-plan", "2xvirtual");
  unbind_thread();
  const Json plan = plan_of(config).json;
  REQUIRE(devices_of_stages(plan) == kTwoEach);
  f.write(f.dir / "plan.json", plan.dump());
  config.plan_file = f.dir / "plan.json";
  REQUIRE(f.run(config) == ExitCode::done);
  const std::string at = f.dir / "by-plan/plan.json";
  CHECK(parse_json(read_file(at), at).find("stages")->dump() == plan.find("stages")->dump());
}

}  // namespace
}  // namespace hearth::test
