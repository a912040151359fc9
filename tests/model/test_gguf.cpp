// GGUF files: the bits of every type, the layout of the file, what each family becomes, whole or
// nothing. scripts/parity/gguf_files.py reads such files with llama.cpp's own package.
#include <filesystem>
#include <limits>

#include "adapter_fixture.h"
#include "checkpoint/gguf_write.h"
#include "checkpoint_fixture.h"
#include "peft/merged_weights.h"
#include "support/crash_states.h"
#include "support/failing_calls.h"
#include "support/faulty_calls.h"
#include "support/layered_calls.h"
#include "support/memory_disk.h"
#include "support/planted.h"

using namespace hearth;
using namespace hearth::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

/// Reads numbers and texts of a file, one after another.
class GgufBytes {
 public:
  explicit GgufBytes(std::string bytes) : bytes_(std::move(bytes)) {}
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string text() {
    const auto length = static_cast<size_t>(number<uint64_t>());
    at_ += length;
    return bytes_.substr(at_ - length, length);
  }
  void skip_value(uint32_t type) {
    constexpr size_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == 8) {
      text();
    } else if (type == 9) {
      const auto inner = number<uint32_t>();
      for (auto n = number<uint64_t>(); n > 0; --n) skip_value(inner);
    } else {
      at_ += kSizes[type];
    }
  }
  size_t at() const { return at_; }
  const std::string& all() const { return bytes_; }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

struct ReadGguf {
  struct Entry {
    std::vector<uint64_t> shape;
    uint32_t type = 0;
    uint64_t offset = 0;
  };
  std::vector<std::string> keys;
  std::map<std::string, Entry> tensors;
  std::string data;

  explicit ReadGguf(const std::string& path) {
    GgufBytes in(read_text(path));
    CHECK(in.number<uint32_t>() == 0x46554747);
    CHECK(in.number<uint32_t>() == 3);
    const auto count = in.number<uint64_t>(), values = in.number<uint64_t>();
    for (uint64_t i = 0; i < values; ++i) {
      keys.push_back(in.text());
      in.skip_value(in.number<uint32_t>());
    }
    for (uint64_t i = 0; i < count; ++i) {
      const std::string name = in.text();
      Entry& entry = tensors[name];
      entry.shape.resize(in.number<uint32_t>());
      for (uint64_t& size : entry.shape) size = in.number<uint64_t>();
      entry.type = in.number<uint32_t>();
      entry.offset = in.number<uint64_t>();
      CHECK(entry.offset % 32 == 0);
    }
    data = in.all().substr((in.at() + 31) / 32 * 32);
    CHECK(data.size() % 32 == 0);
  }
  float f32_at(const std::string& name, size_t i) const {
    float value = 0;
    std::memcpy(&value, data.data() + tensors.at(name).offset + 4 * i, 4);
    return value;
  }
};

/// Experts in every layer, rows of 64.
Json gguf_config(const std::string& family) {
  Json config = parse_json(R"({"vocab_size": 11, "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-6,
    "max_position_embeddings": 64, "rope_theta": 10000.0, "num_experts_per_tok": 2,
    "intermediate_size": 48, "torch_dtype": "float32", "norm_topk_prob": false})",
                           "");
  config["model_type"] = family;
  config[family == "mixtral" ? "num_local_experts" : "num_experts"] = 3;
  if (family.starts_with("qwen")) config["moe_intermediate_size"] = 32;
  if (family == "qwen2_moe") config["shared_expert_intermediate_size"] = 32;
  if (family == "qwen3_moe") config["head_dim"] = 16;
  return config;
}

void write_plain(const Checkpoint& base, GgufType type, const std::string& path) {
  CheckpointWeights weights(base);
  GgufMetadata metadata;
  add_gguf_model(base.spec(), type, metadata);
  write_gguf(weights, weights.table(), base.spec(), type, metadata, path);
}

}  // namespace

TEST_CASE("gguf: q8_0 is ggml's reference, halves away from zero", "[gguf]") {
  std::vector<float> values(64, 0.0f);
  values[0] = 127;  // scale 1
  values[1] = 2.5f;
  values[2] = -2.5f;
  values[3] = 0.49f;
  values[32] = -254;  // scale 2
  values[33] = 3;
  std::byte out[68];
  REQUIRE(gguf_bytes(GgufType::q8_0, 64) == sizeof out);
  CHECK(to_gguf(GgufType::q8_0, values.data(), 64, out) == 64);
  const auto at = [&](size_t i) { return static_cast<int>(static_cast<int8_t>(out[i])); };
  CHECK(at(0) == 0);
  CHECK(at(1) == 0x3c);  // 1 as f16
  CHECK(at(2) == 127);
  CHECK(at(3) == 3);
  CHECK(at(4) == -3);
  CHECK(at(5) == 0);
  CHECK(at(35) == 0x40);  // 2 as f16
  CHECK(at(36) == -127);
  CHECK(at(37) == 2);  // 1.5

  // Blocks of zeros and of tiny values are zeros; a scale beyond f16 is refused.
  std::fill(values.begin(), values.end(), 0.0f);
  values[40] = 1e-39f;
  CHECK(to_gguf(GgufType::q8_0, values.data(), 64, out) == 64);
  CHECK(std::all_of(out, out + 68, [](std::byte b) { return b == std::byte{0}; }));
  values[40] = 1e8f;
  CHECK(to_gguf(GgufType::q8_0, values.data(), 64, out) == 32);
}

TEST_CASE("gguf: f16 and bf16 round to even, and say what does not fit", "[gguf]") {
  const float values[] = {1.0f + 1.0f / 2048, 65519.0f, 65520.0f};
  std::byte out[12];
  CHECK(to_gguf(GgufType::f16, values, 3, out) == 2);
  uint16_t bits = 0;
  std::memcpy(&bits, out, 2);
  CHECK(bits == 0x3c00);
  const float odd = 1.0f + 1.0f / 256;  // half between two bf16
  CHECK(to_gguf(GgufType::bf16, &odd, 1, out) == 1);
  std::memcpy(&bits, out, 2);
  CHECK(bits == 0x3f80);
  CHECK(to_gguf(GgufType::f32, values, 3, out) == 3);
  CHECK(std::memcmp(out, values, 12) == 0);
}

TEST_CASE("gguf: tensors of the families", "[gguf]") {
  const TemporaryDirectory d;
  const std::map<std::string, std::pair<std::string, size_t>> families{
      {"mixtral", {"llama", 3 + 2 * 10}},
      {"olmoe", {"olmoe", 3 + 2 * 12}},
      {"qwen2_moe", {"qwen2moe", 3 + 2 * 17}},
      {"qwen3_moe", {"qwen3moe", 3 + 2 * 12}}};
  for (const auto& [family, expected] : families) {
    INFO(family);
    make_checkpoint(gguf_config(family), d / family);
    const Checkpoint base(d / family);
    CHECK(gguf_architecture(base.spec()) == expected.first);
    write_plain(base, GgufType::f32, d / (family + ".gguf"));
    const ReadGguf file(d / (family + ".gguf"));
    CHECK(file.tensors.size() == expected.second);
    CHECK(file.keys.front() == expected.first + ".block_count");
    const auto& gate = file.tensors.at("blk.1.ffn_gate_exps.weight");
    CHECK(gate.shape == std::vector<uint64_t>{64, family.starts_with("qwen") ? 32u : 48u, 3});
    CHECK(file.tensors.at("blk.0.ffn_norm.weight").shape == std::vector<uint64_t>{64});
    CHECK(fs::file_size(d / (family + ".gguf")) > file.data.size());

    // Each expert where it belongs: the first element of each matrix.
    CheckpointWeights weights(base);
    for (int32_t e = 0; e < 3; ++e) {
      const BlockId block = weights.table().find_block(BlockKind::expert, 1, e);
      const TensorId id = *weights.table().find_slot(block, Slot::down);
      const Tensor& down = weights.table().tensor(id);
      std::vector<float> row(static_cast<size_t>(down.cols));
      weights.read(id, 1, 1, row.data());
      const auto at = static_cast<size_t>(e * down.size() + down.cols);
      CHECK(file.f32_at("blk.1.ffn_down_exps.weight", at) == row[0]);
    }
    // q of the architecture llama: row 2 i + j of a head is its row 8 j + i; elsewhere as it is.
    const BlockId attention = weights.table().find_block(BlockKind::attention, 0);
    for (const auto& [slot, name] : {std::pair(Slot::q, "q"), std::pair(Slot::k, "k")}) {
      const TensorId id = *weights.table().find_slot(attention, slot);
      std::vector<float> row(64);
      weights.read(id, 16 + 8 + 3, 1, row.data());
      const size_t row_of_file = family == "mixtral" ? 16 + 2 * 3 + 1 : 16 + 8 + 3;
      CHECK(file.f32_at(std::string("blk.0.attn_") + name + ".weight", 64 * row_of_file) == row[0]);
    }
  }
}

TEST_CASE("gguf: vectors and routers are f32, rows without whole blocks f16", "[gguf]") {
  const TemporaryDirectory d;
  make_checkpoint(gguf_config("qwen2_moe"), d / "base");
  const Checkpoint base(d / "base");
  write_plain(base, GgufType::q8_0, d / "q.gguf");
  const ReadGguf file(d / "q.gguf");
  const auto type = [&](const char* name) { return file.tensors.at(name).type; };
  CHECK(type("token_embd.weight") == 8);
  CHECK(type("blk.0.attn_q.weight") == 8);
  CHECK(type("blk.0.attn_q.bias") == 0);
  CHECK(type("blk.0.attn_norm.weight") == 0);
  CHECK(type("blk.0.ffn_gate_inp.weight") == 0);
  CHECK(type("blk.0.ffn_gate_inp_shexp.weight") == 0);
  CHECK(type("blk.0.ffn_down_exps.weight") == 8);
  CHECK(file.tensors.at("blk.0.ffn_gate_inp_shexp.weight").shape == std::vector<uint64_t>{64, 1});
  make_checkpoint(gguf_config("mixtral"), d / "odd");
  write_plain(Checkpoint(d / "odd"), GgufType::q8_0, d / "odd.gguf");
  CHECK(ReadGguf(d / "odd.gguf").tensors.at("blk.0.ffn_down_exps.weight").type == 1);  // 48 wide
  CHECK(ReadGguf(d / "odd.gguf").tensors.at("blk.0.ffn_up_exps.weight").type == 8);
}

TEST_CASE("gguf: what llama.cpp has no form for is refused or said", "[gguf]") {
  const TemporaryDirectory d;
  const auto spec_of = [&](const std::string& family, const char* key, Json value) {
    return find_family(family).read_config(changed(gguf_config(family), key, std::move(value)),
                                           "c");
  };
  const auto refusal = [](const ModelSpec& spec) {
    return error_of([&] { require_gguf_form(spec, "config.json"); });
  };
  CHECK(refusal(spec_of("qwen3_moe", "head_dim", 16)).empty());
  CHECK_THAT(refusal(spec_of("qwen3_moe", "mlp_only_layers", JsonArray{Json(1)})),
             ContainsSubstring("layers without experts"));
  CHECK_THAT(refusal(spec_of("olmoe", "clip_qkv", 8)), ContainsSubstring("clip_qkv"));
  CHECK_THAT(refusal(spec_of("qwen3_moe", "attention_bias", true)), ContainsSubstring("bias"));
  CHECK(gguf_differences(spec_of("qwen3_moe", "norm_topk_prob", true)).empty());
  CHECK(gguf_differences(spec_of("qwen3_moe", "norm_topk_prob", false)).size() == 1);
  CHECK(gguf_differences(spec_of("olmoe", "norm_topk_prob", true)).size() == 1);
  CHECK(gguf_differences(spec_of("mixtral", "sliding_window", 8)).size() == 1);
  CHECK(gguf_differences(spec_of("mixtral", "sliding_window", 64)).empty());
}

TEST_CASE("gguf: merged weights are those of the merged checkpoint", "[gguf]") {
  const TemporaryDirectory d;
  make_checkpoint(changed(gguf_config("mixtral"), "torch_dtype", "bfloat16"), d / "base");
  const Checkpoint base(d / "base");
  AdapterOptions options;
  options.rank = options.expert_rank = 2;
  options.targets = {"attention", "experts"};
  const AdapterTable adapters = make_adapters(base, options);
  write_merged(adapters.table, base, Pool(1), d / "merged");
  write_plain(Checkpoint(d / "merged"), GgufType::f32, d / "of-merged.gguf");
  write_plain(base, GgufType::f32, d / "of-base.gguf");
  CheckpointWeights weights(base);
  const Pool pool(2);
  MergedWeights merged(adapters.table, weights, pool);
  GgufMetadata metadata;
  add_gguf_model(base.spec(), GgufType::f32, metadata);
  write_gguf(merged, weights.table(), base.spec(), GgufType::f32, metadata, d / "live.gguf");
  const bool same = read_text(d / "live.gguf") == read_text(d / "of-merged.gguf");
  CHECK(same);
  const bool moved = read_text(d / "live.gguf") != read_text(d / "of-base.gguf");
  CHECK(moved);
}

TEST_CASE("gguf: a weight that the type cannot hold leaves nothing", "[gguf]") {
  const TemporaryDirectory d;
  make_checkpoint(gguf_config("olmoe"), d / "base");
  const Checkpoint base(d / "base");
  class Large final : public WeightSource {
   public:
    void read(TensorId, int64_t, int64_t rows, float* out) override {
      std::fill_n(out, static_cast<size_t>(rows) * 48, 1e6f);
    }
  } large;
  const ParameterTable table = base.make_table();
  const std::string problem =
      error_of([&] { write_gguf(large, table, base.spec(), GgufType::f16, {}, d / "out.gguf"); },
               ExitCode::numeric);
  CHECK_THAT(problem, ContainsSubstring("too large for f16"));
  CHECK_FALSE(fs::exists(d / "out.gguf"));
  CHECK_FALSE(fs::exists(d / ".tmp-out.gguf"));
  write_text(d / "there.gguf", "mine");
  CHECK_THAT(error_of([&] { write_plain(base, GgufType::f16, d / "there.gguf"); }, ExitCode::usage),
             ContainsSubstring("exists already"));
  CHECK(read_text(d / "there.gguf") == "mine");
}

TEST_CASE("gguf: a power loss leaves nothing or the whole file", "[gguf]") {
  const TemporaryDirectory d;
  make_checkpoint(gguf_config("olmoe"), d / "base");
  const Checkpoint base(d / "base");
  write_plain(base, GgufType::f16, d / "whole.gguf");
  const std::string whole = read_text(d / "whole.gguf");
  MemoryDisk disk("/memory-disk");
  FaultyCalls calls(disk);
  const FileCallsOverride guard(calls);
  make_directory("/memory-disk/out");
  disk.settle();
  const std::string path = "/memory-disk/out/m.gguf";
  write_plain(base, GgufType::f16, path);
  disk.promise(1);
  const CrashReport report = crash_states(disk, {60, 10}, [&](MemoryDisk& crashed, int promised) {
    const FileCallsOverride inner(crashed);
    if (file_info(path).kind == FileKind::none) {
      return std::string(promised > 0 ? "a published file is gone" : "");
    }
    return std::string(read_file(path) == whole ? "" : "not whole");
  });
  CHECK(report.fault == "");
  CHECK(report.states > 50);
}
