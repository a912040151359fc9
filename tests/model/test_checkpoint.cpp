// Opening checkpoints: which tensors are accepted, which are refused and with which words.
#include <filesystem>

#include "checkpoint_fixture.h"
#include "support/counted_memory.h"

using namespace hearth;
using namespace hearth::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

TEST_CASE("checkpoint: single and sharded hold the same weights", "[checkpoint]") {
  const TemporaryDirectory directory;
  for (const char* type : {"float32", "bfloat16", "float16"}) {
    const std::string single = directory / (std::string("single-") + type);
    const std::string sharded = directory / (std::string("sharded-") + type);
    make_checkpoint(changed(small_config(), "torch_dtype", type), single);
    fs::copy(single, sharded);
    shard(sharded, 5);

    const Checkpoint first(single), second(sharded);
    CHECK(first.files().size() == 1);
    CHECK(second.files().size() > 5);
    OwnedTable a(first, true), b(second, true), frozen(first, false);
    OwnedTable rounded(first, true, Compute::bf16);
    first.read_weights(a.table, Pool(1));
    second.read_weights(b.table, Pool(3));
    first.read_weights(frozen.table, Pool(2));
    first.read_weights(rounded.table, Pool(2));
    for (TensorId id = 0; id < static_cast<TensorId>(a.table.tensors().size()); ++id) {
      const Tensor& tensor = a.table.tensor(id);
      INFO(tensor.name);
      const TensorLocation& at = first.location(tensor.name);
      std::vector<char> bytes(at.entry.end - at.entry.begin);
      first.files()[0]->read(at.entry, bytes.data(), bytes.size(), 0);
      std::vector<float> expected(static_cast<size_t>(tensor.size()));
      convert(tensor.stored, bytes.data(), DType::f32, expected.data(), tensor.size());

      const auto equal = [&](ConstView view, const void* values, size_t size) {
        return std::memcmp(view.data, values, size) == 0;
      };
      const size_t f32_bytes = expected.size() * sizeof(float);
      CHECK(a.table.weight(id).dtype == DType::f32);
      CHECK(equal(a.table.weight(id), expected.data(), f32_bytes));
      CHECK(equal(b.table.weight(id), expected.data(), f32_bytes));
      CHECK(frozen.table.weight(id).dtype == tensor.stored);
      CHECK(equal(frozen.table.weight(id), bytes.data(), bytes.size()));
      const ConstView working = rounded.table.weight(id);
      if (working.dtype == DType::bf16) {
        for (int64_t i = 0; i < tensor.size(); ++i) {
          CHECK(working.as<bf16>()[i].bits == to_bf16(expected[static_cast<size_t>(i)]).bits);
        }
      }
    }
  }
}

TEST_CASE("checkpoint: missing, misshapen and unknown tensors are named", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string model = directory / "model";
  make_checkpoint(small_config(), model);
  const auto after = [&](const std::function<void(std::vector<StoredTensor>&)>& change) {
    const std::string copy = directory / "copy";
    fs::remove_all(copy);
    fs::copy(model, copy);
    edit(copy, change);
    return open_error(copy);
  };
  CHECK(after([](auto&) {}).empty());
  for (const StoredTensor& tensor : load(model + "/model.safetensors")) {
    const std::string name = tensor.entry.name;
    const std::string message = after([&](auto& tensors) {
      std::erase_if(tensors, [&](const auto& t) { return t.entry.name == name; });
    });
    CHECK_THAT(message, ContainsSubstring("tensor '" + name + "'"));
    CHECK_THAT(message, ContainsSubstring("is missing"));
  }
  std::string message = after([](auto& tensors) { named(tensors, kQ).entry.shape = {6, 16}; });
  CHECK_THAT(message, ContainsSubstring("model.safetensors: tensor '" + std::string(kQ) + "'"));
  CHECK_THAT(message, ContainsSubstring("shape [6, 16], config.json asks for [16, 6]"));
  message = after([](auto& tensors) { named(tensors, kNorm).entry.shape = {1, 6}; });
  CHECK_THAT(message, ContainsSubstring("shape [1, 6], config.json asks for [6]"));
  message = after([](auto& tensors) { named(tensors, kQ).entry.dtype = "I32"; });
  CHECK_THAT(message, ContainsSubstring("stored as I32"));

  const auto add = [](const std::string& name) {
    return [name](std::vector<StoredTensor>& tensors) {
      tensors.push_back({{name, "F32", {1}, 0, 0}, "abcd"});
    };
  };
  message = after(add("model.layers.3.input_layernorm.weight"));
  CHECK_THAT(message, ContainsSubstring("unknown tensor 'model.layers.3.input_layernorm.weight'"));
  CHECK_THAT(after(add("model.layers.0.self_attn.q_proj.bias")), ContainsSubstring("unknown"));
  CHECK(after(add("model.layers.0.self_attn.rotary_emb.inv_freq")).empty());
  CHECK(after(add("mtp.layers.0.input_layernorm.weight")).empty());

  // Layers for multi-token prediction: those that config.json announces, or that hold their mark.
  const auto add_two = [&](const std::string& first, const std::string& second) {
    return [=](std::vector<StoredTensor>& tensors) {
      add(first)(tensors);
      add(second)(tensors);
    };
  };
  const std::string norm = "model.layers.3.input_layernorm.weight";
  CHECK(after(add_two(norm, "model.layers.3.eh_proj.weight")).empty());
  CHECK_THAT(after(add_two(norm, "model.layers.4.eh_proj.weight")), ContainsSubstring(norm));
  CHECK_THAT(after(add("model.layers.2.eh_proj.weight")), ContainsSubstring("unknown"));
  CHECK_THAT(after(add("model.layers.03x.eh_proj.weight")), ContainsSubstring("unknown"));
}

TEST_CASE("checkpoint: layers for multi-token prediction are passed over and copied",
          "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string model = directory / "model";
  make_checkpoint(changed(small_config(), "num_nextn_predict_layers", 1), model);
  edit(model, [](auto& tensors) {
    // Not even of a type that could be read, as their quantised variants.
    tensors.push_back(
        {{"model.layers.3.mlp.experts.0.up_proj.weight", "F8_E4M3", {4}, 0, 0}, "abcd"});
  });
  CHECK(read_error(model).empty());
  edit(model, [](auto& tensors) {
    tensors.push_back({{"model.layers.4.input_layernorm.weight", "F32", {1}, 0, 0}, "abcd"});
  });
  CHECK_THAT(open_error(model), ContainsSubstring("unknown tensor 'model.layers.4."));
}

TEST_CASE("checkpoint: a tied head may be absent or equal", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string model = directory / "model";
  const Json tied = changed(small_config(), "tie_word_embeddings", true);
  make_checkpoint(tied, model);
  CHECK(Checkpoint(model).make_table().find("lm_head.weight") == std::nullopt);
  CHECK(read_error(model).empty());

  edit(model, [](auto& tensors) {
    StoredTensor head = named(tensors, "model.embed_tokens.weight");
    head.entry.name = "lm_head.weight";
    tensors.push_back(head);
  });
  CHECK(read_error(model).empty());
  edit(model, [](auto& tensors) { named(tensors, "lm_head.weight").data[5] ^= 1; });
  CHECK_THAT(read_error(model), ContainsSubstring("'lm_head.weight' differs"));
  CHECK_THAT(read_error(model), ContainsSubstring("tie_word_embeddings"));
  edit(model, [](auto& tensors) { named(tensors, "lm_head.weight").entry.shape = {6, 11}; });
  CHECK_THAT(open_error(model), ContainsSubstring("asks for [11, 6]"));
}

TEST_CASE("checkpoint: a config of another model is refused without its memory", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string model = directory / "model";
  make_checkpoint(small_config(), model);
  const Json huge = changed(changed(small_config(), "num_hidden_layers", 512), "num_experts", 512);
  write_text(model + "/config.json", huge.dump());
  start_counting();
  CHECK_THAT(open_error(model), ContainsSubstring("config.json describes"));
  CHECK(counted_peak() < 4'000'000);
}

TEST_CASE("checkpoint: decoding stops where generation_config.json says", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string model = directory / "model";
  make_checkpoint(changed(small_config(), "eos_token_id", 3), model);
  CHECK(Checkpoint(model).spec().eos_ids == std::vector<int64_t>{3});
  write_text(model + "/generation_config.json", R"({"eos_token_id": [4, 5]})");
  CHECK(Checkpoint(model).spec().eos_ids == std::vector<int64_t>{4, 5});
  write_text(model + "/generation_config.json", R"({"do_sample": true})");
  CHECK(Checkpoint(model).spec().eos_ids == std::vector<int64_t>{3});
  write_text(model + "/generation_config.json", R"({"a": 1, "a": 2})");
  CHECK_THAT(open_error(model), ContainsSubstring("generation_config.json"));
}

TEST_CASE("checkpoint: digests see every byte of config and weights", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string model = directory / "model";
  make_checkpoint(small_config(), model);
  const auto before = Checkpoint(model).digests();
  REQUIRE(before.size() == 2);
  CHECK(before[0].first == "config.json");
  CHECK(before[1].first == "model.safetensors");
  CHECK(before[1].second == digest_of(read_text(model + "/model.safetensors")));
  edit(model, [](auto& tensors) { named(tensors, kQ).data[0] ^= 1; });
  CHECK(Checkpoint(model).digests()[0] == before[0]);
  CHECK(Checkpoint(model).digests()[1] != before[1]);
}
