// The adapters of a saved state: what its tensors and scales must say to fit a model.
#include "state/state_adapter.h"

#include <catch2/catch_test_macros.hpp>

#include "support/has.h"
#include "support/stored_tensors.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

const std::string kQuery = "model.layers.0.self_attn.q_proj.";  // [32, 32]
const std::string kKey = "model.layers.0.self_attn.k_proj.";    // [16, 32]
const std::string kA = "lora_A.weight", kB = "lora_B.weight";

/// Weights files of states over the fixture's base.
struct States : TrainingFixture {
  Checkpoint base{dir / "base"};

  static StoredTensor zeros(const std::string& name, const std::vector<int64_t>& shape) {
    int64_t size = 1;
    for (const int64_t of : shape) size *= of;
    return {{name, "F32", shape, 0, 0}, std::string(static_cast<size_t>(4 * size), '\0')};
  }
  static std::vector<StoredTensor> pair(const std::string& module, int64_t rank, int64_t rows) {
    return {zeros(module + kA, {rank, 32}), zeros(module + kB, {rows, rank})};
  }
  ParameterTable table(const std::vector<StoredTensor>& tensors, const std::string& scales) const {
    const std::string path = dir / "weights.safetensors";
    write(path, "");
    store(path, tensors);
    const SafetensorsFile file(path);
    return saved_adapters(base, {&file, 1}, parse_json(scales, "scales"));
  }
  double scale(const std::string& scales) const {
    const ParameterTable with = table(pair(kQuery, 2, 32), scales);
    return with.blocks().back().scale;
  }
  std::string refusal(const std::vector<StoredTensor>& tensors,
                      const std::string& scales = R"({"scale": 1})") const {
    const Raised raised = raised_by([&] { table(tensors, scales); });
    CHECK(raised.code == ExitCode::input);
    CHECK(raised.says("weights.safetensors: "));
    return raised.message;
  }
};

TEST_CASE("state adapters: ranks are those of A, and trained tensors of the model are marked") {
  const States f;
  std::vector<StoredTensor> tensors = f.pair(kQuery, 2, 32);
  for (StoredTensor& t : f.pair(kKey, 3, 16)) tensors.push_back(t);
  tensors.push_back(f.zeros("model.norm.weight", {32}));
  const ParameterTable table = f.table(tensors, R"({"scale": 2})");
  REQUIRE(table.blocks().back().kind == BlockKind::adapter);
  CHECK(table.blocks().back().scale == 2);
  CHECK(table.tensor(table.find(kQuery + kA).value()).rows == 2);
  CHECK(table.tensor(table.find(kKey + kB).value()).cols == 3);
  CHECK(table.tensor(table.find("model.norm.weight").value()).trainable);
  CHECK_FALSE(table.tensor(table.find(kQuery + "weight").value()).trainable);
  // What a state of this table would hold.
  CHECK(adapter_scales(table).dump() == R"({"scale": 2.0, "scales": {}})");
}

TEST_CASE("state adapters: a block's own scale comes before the most common one") {
  const States f;
  const std::string own = "\"" + kQuery + kA + "\"";
  CHECK(f.scale(R"({"scale": 2, "scales": {}})") == 2);
  CHECK(f.scale(R"({"scale": 2, "scales": {"other": 3}})") == 2);
  CHECK(f.scale(R"({"scale": 2, "scales": {)" + own + ": 0.5}}") == 0.5);
  CHECK(f.scale(R"({"scale": 2, "scales": 5})") == 2);
  CHECK(f.scale(R"({"scale": 2})") == 2);
  for (const char* none : {"5", "null", "{}", R"({"scale": "2"})", R"({"scales": {}})"}) {
    INFO(none);
    CHECK(has(f.refusal(f.pair(kQuery, 2, 32), none), "the state has no adapter scale 'scale'"));
  }
  CHECK(has(f.refusal(f.pair(kQuery, 2, 32), R"({"scale": 2, "scales": {)" + own + ": \"x\"}}"),
            "the state has no adapter scale '" + kQuery + kA + "'"));
}

TEST_CASE("state adapters: tensors that do not fit the model are refused by name") {
  const States f;
  const auto unfit = [&](const std::string& name, const std::vector<int64_t>& shape) {
    const std::string message = f.refusal({f.zeros(name, shape)});
    INFO(message);
    CHECK(has(message, "tensor '" + name + "' of shape "));
    CHECK(has(message, "does not fit the model"));
  };
  unfit(kQuery + kA, {64});
  unfit(kQuery + kA, {1, 2, 32});
  unfit(kQuery + kA, {0, 32});
  unfit(kQuery + kA, {2, 31});
  unfit("model.norm." + kA, {1, 32});
  CHECK(has(f.refusal({f.zeros(kQuery + kA, {2, 32})}), "tensor '" + kQuery + kB + "' is missing"));
}

TEST_CASE("state adapters: a bias has the module of its matrix, and no adapter of its own") {
  const States f;
  const std::string value = "model.layers.0.self_attn.v_proj.";
  f.write(f.dir / "biased.json", R"({"architectures":["Qwen3MoeForCausalLM"],
    "model_type":"qwen3_moe","vocab_size":64,"hidden_size":32,"num_hidden_layers":1,
    "num_attention_heads":2,"num_key_value_heads":1,"head_dim":16,"intermediate_size":40,
    "moe_intermediate_size":16,"num_experts":4,"num_experts_per_tok":2,"norm_topk_prob":true,
    "decoder_sparse_step":1,"mlp_only_layers":[],"hidden_act":"silu","attention_bias":true,
    "max_position_embeddings":128,"rms_norm_eps":1e-6,"rope_theta":10000.0,
    "tie_word_embeddings":false,"torch_dtype":"bfloat16","router_aux_loss_coef":0.01})");
  init_checkpoint(f.dir / "biased.json", f.dir / "biased", 5, f.dir / "tokenizer");
  const Checkpoint base(f.dir / "biased");
  std::vector<StoredTensor> tensors = f.pair(kQuery, 2, 32);
  for (const std::string& module : {kKey, value}) {
    for (StoredTensor& t : f.pair(module, 3, 16)) tensors.push_back(t);
  }
  tensors.push_back(f.zeros(value + "bias", {16}));  // trained beside the adapters
  const std::string path = f.dir / "weights.safetensors";
  f.write(path, "");
  store(path, tensors);
  const SafetensorsFile file(path);
  const ParameterTable table =
      saved_adapters(base, {&file, 1}, parse_json(R"({"scale": 2})", "scales"));

  int64_t factors = 0;
  for (const Tensor& t : table.tensors()) factors += t.factor == Factor::none ? 0 : 1;
  CHECK(factors == 6);  // A and B of three matrices
  for (const std::string& module : {kQuery, kKey, value}) {
    INFO(module);
    CHECK(table.tensor(table.find(module + kA).value()).trainable);
    CHECK(table.tensor(table.find(module + kA).value()).cols == 32);
    CHECK_FALSE(table.tensor(table.find(module + "weight").value()).trainable);
    CHECK(table.tensor(table.find(module + "bias").value()).trainable == (module == value));
  }
}

}  // namespace
}  // namespace hearth::test
