// Opening checkpoints: what is accepted, what is refused and with which words; reading weights.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "model_fixtures.h"
#include "support/counted_memory.h"
#include "support/failing_calls.h"
#include "support/stored_tensors.h"
#include "support/temporary_directory.h"

using namespace hearth;
using namespace hearth::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

constexpr const char* kQ = "model.layers.0.self_attn.q_proj.weight";
constexpr const char* kNorm = "model.norm.weight";

std::string open_error(const std::string& directory, bool follow_links = false) {
  return error_of([&] { Checkpoint checkpoint(directory, follow_links); });
}

void edit_index(const std::string& directory, const std::function<void(Json&)>& change) {
  const std::string path = directory + "/model.safetensors.index.json";
  Json index = parse_json(read_text(path), path);
  change(index);
  write_text(path, index.dump());
}

std::string read_error(const std::string& directory) {
  return error_of([&] {
    const Checkpoint checkpoint(directory);
    OwnedTable owned(checkpoint, true);
    checkpoint.read_weights(owned.table, Pool(2));
  });
}

}  // namespace

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

TEST_CASE("checkpoint: weights that are not finite are named by index", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string model = directory / "model";
  const auto poisoned = [&](const std::string& type, size_t index, const std::string& bytes) {
    fs::remove_all(model);
    make_checkpoint(changed(small_config(), "torch_dtype", type), model);
    edit(model, [&](auto& tensors) {
      named(tensors, kQ).data.replace(index * bytes.size(), bytes.size(), bytes);
    });
    return read_error(model);
  };
  const auto names = [&](const std::string& message, int index) {
    CHECK_THAT(message, ContainsSubstring(kQ));
    CHECK_THAT(message, ContainsSubstring("element " + std::to_string(index) + " is not finite"));
  };
  names(poisoned("float32", 17, std::string("\0\0\x80\x7f", 4)), 17);
  names(poisoned("float32", 95, std::string("\x01\0\x80\xff", 4)), 95);
  names(poisoned("bfloat16", 0, "\x80\xff"), 0);
  names(poisoned("float16", 3, std::string("\0\x7c", 2)), 3);
  CHECK(poisoned("bfloat16", 3, "\x7f\x7f").empty());  // the largest finite number
}

TEST_CASE("checkpoint: index and shards must agree", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string model = directory / "model";
  const auto after = [&](const std::function<void(Json&)>& change) {
    fs::remove_all(model);
    make_checkpoint(small_config(), model);
    shard(model, 8);
    edit_index(model, change);
    return open_error(model);
  };
  const auto set = [&](const std::string& tensor, Json file) {
    return after([&](Json& index) { index["weight_map"][tensor] = std::move(file); });
  };
  CHECK(after([](Json&) {}).empty());
  CHECK_THAT(set(kQ, "model-1.safetensors"),
             ContainsSubstring("'" + std::string(kQ) + "' is not in 'model-1.safetensors' but in"));
  CHECK_THAT(set("nothing", "model-1.safetensors"), ContainsSubstring("nor in another shard"));
  CHECK_THAT(set(kQ, "model-99.safetensors"),
             ContainsSubstring("'model-99.safetensors', which is not there"));
  for (const char* name :
       {"../model-1.safetensors", "/etc/x.safetensors", "a/b.safetensors", "model-1.txt",
        ".safetensors", "..", "", ".hidden.safetensors", "a\\b.safetensors"}) {
    INFO(name);
    CHECK_THAT(set(kQ, name), ContainsSubstring("no plain file name"));
  }
  CHECK_THAT(set(kQ, std::string("a\0.safetensors", 14)), ContainsSubstring("no plain file name"));
  CHECK_THAT(set(kQ, std::string(300, 'a') + ".safetensors"), ContainsSubstring("no plain file"));
  CHECK_THAT(set(kQ, "pytorch_model-1.bin"), ContainsSubstring("pickle"));
  CHECK_THAT(set(kQ, 3), ContainsSubstring("is no file name"));
  CHECK_THAT(after([](Json& index) { index["weight_map"] = JsonObject{}; }),
             ContainsSubstring("weight_map"));
  CHECK_THAT(after([](Json& index) { index = JsonArray{}; }), ContainsSubstring("weight_map"));
  CHECK_THAT(after([&](Json& index) {
               std::erase_if(index["weight_map"].as_object(),
                             [](const auto& m) { return m.first == kQ; });
             }),
             ContainsSubstring("'" + std::string(kQ) + "' is not in the index"));

  // Keys that come twice, a tensor in two shards, a single file beside the shards.
  CHECK(after([](Json&) {}).empty());
  const std::string path = model + "/model.safetensors.index.json";
  std::string text = read_text(path);
  text.insert(text.find('{', text.find("weight_map")) + 1,
              "\"" + std::string(kQ) + "\": \"model-0.safetensors\",");
  write_text(path, text);
  CHECK_THAT(open_error(model), ContainsSubstring(kQ));

  CHECK(after([](Json&) {}).empty());
  std::vector<StoredTensor> tensors = load(model + "/model-1.safetensors");
  tensors.push_back(load(model + "/model-0.safetensors")[0]);
  store(model + "/model-1.safetensors", tensors);
  CHECK_THAT(open_error(model), ContainsSubstring("is also in"));

  CHECK(after([](Json&) {}).empty());
  store(model + "/model.safetensors", {});
  CHECK_THAT(open_error(model), ContainsSubstring("beside an index that does not name it"));
}

TEST_CASE("checkpoint: files that are none are refused with help", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string model = directory / "model";
  const std::string lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n";
  const auto fresh = [&] {
    fs::remove_all(model);
    make_checkpoint(small_config(), model);
  };
  CHECK_THAT(open_error(directory / "none"), ContainsSubstring("none"));
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json",
                           "generation_config.json", "model.safetensors.index.json"}) {
    INFO(name);
    fresh();
    write_text(model + "/" + name, lfs);
    CHECK_THAT(open_error(model), ContainsSubstring("git lfs pull"));
    CHECK_THAT(open_error(model), ContainsSubstring(name));
    // Directories and pipes are not read.
    remove_file(model + "/" + name);
    make_directory(model + "/" + name);
    CHECK_THAT(open_error(model), ContainsSubstring(name));
    fs::remove(model + "/" + name);
    REQUIRE(mkfifo((model + "/" + name).c_str(), 0600) == 0);
    CHECK_THAT(open_error(model), ContainsSubstring(name));
  }
  fresh();
  fs::rename(model + "/model.safetensors", model + "/pytorch_model.bin");
  CHECK_THAT(open_error(model), ContainsSubstring("pickles ('pytorch_model.bin')"));
  remove_file(model + "/pytorch_model.bin");
  CHECK_THAT(open_error(model), ContainsSubstring("neither model.safetensors nor"));
  CHECK_THAT(open_error(model + "/config.json"), ContainsSubstring("expected the directory"));
  fresh();
  write_text(model + "/config.json", R"({"model_type": "qwen3_moe", "model_type": "qwen3_moe"})");
  CHECK_THAT(open_error(model), ContainsSubstring("model_type"));
}

TEST_CASE("checkpoint: links stay in the directory or in the cache's blobs", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string outside = directory / "outside";
  const std::string model = directory / "model";
  make_checkpoint(small_config(), outside);
  make_checkpoint(small_config(), model);
  CHECK(open_error(model).empty());

  // The directory itself may be a link; files in it may be links to each other.
  fs::create_directory_symlink(model, directory / "link");
  CHECK(open_error(directory / "link").empty());
  CHECK(open_error((directory / "link") + "/").empty());
  fs::rename(model + "/model.safetensors", model + "/data");
  fs::create_symlink("data", model + "/model.safetensors");
  CHECK(open_error(model).empty());

  for (const char* name : {"model.safetensors", "config.json"}) {
    remove_file(model + "/" + name);
    fs::create_symlink(outside + "/" + name, model + "/" + name);
    CHECK_THAT(open_error(model), ContainsSubstring("--follow-links"));
    CHECK_THAT(open_error(model), ContainsSubstring(std::string("model/") + name));
    CHECK(open_error(model, true).empty());
    remove_file(model + "/" + name);
    fs::copy(outside + "/" + name, model + "/" + name);
  }
  fs::create_symlink("/dev/zero", model + "/tokenizer.json");
  CHECK_THAT(open_error(model), ContainsSubstring("tokenizer.json"));
  CHECK_THAT(open_error(model, true), ContainsSubstring("tokenizer.json"));
  remove_file(model + "/tokenizer.json");
  fs::create_symlink("nowhere", model + "/tokenizer.json");
  CHECK_THAT(open_error(model), ContainsSubstring("leads nowhere"));

  // A hub cache.
  const std::string cache = directory / "models--a--b";
  const std::string snapshot = cache + "/snapshots/0123";
  fs::create_directories(snapshot);
  fs::create_directories(cache + "/blobs");
  for (const char* name : {"model.safetensors", "config.json"}) {
    fs::copy(outside + "/" + name, cache + "/blobs/blob-" + name);
    fs::create_symlink(std::string("../../blobs/blob-") + name, snapshot + "/" + name);
  }
  CHECK(open_error(snapshot).empty());
  fs::rename(cache + "/blobs/blob-config.json", cache + "/config.json");
  remove_file(snapshot + "/config.json");
  fs::create_symlink("../../config.json", snapshot + "/config.json");
  CHECK_THAT(open_error(snapshot), ContainsSubstring("--follow-links"));
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

TEST_CASE("checkpoint: reading weights takes no second copy", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string model = directory / "model";
  make_checkpoint(changed(small_config(), "vocab_size", 600'000), model);
  const Checkpoint checkpoint(model);
  OwnedTable owned(checkpoint, false);
  start_counting();
  checkpoint.read_weights(owned.table, Pool(1));
  CHECK(counted_peak() < 17 << 20);  // two weights of 14 MB each, pieces of 4 MiB
}

TEST_CASE("checkpoint: the disk fails or hands out small pieces", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string model = directory / "model";
  make_checkpoint(small_config(), model);
  OwnedTable expected(Checkpoint(model), false);
  Checkpoint(model).read_weights(expected.table, Pool(1));
  {
    FailingCalls calls;
    calls.piece = 3;
    calls.interrupts = true;
    const FileCallsOverride guard(calls);
    const Checkpoint checkpoint(model);
    OwnedTable owned(checkpoint, false);
    checkpoint.read_weights(owned.table, Pool(1));
    CHECK(owned.arenas == expected.arenas);
  }
  int failures = 0;
  for (int n = 1;; ++n) {
    FailingCalls calls;
    calls.fail_at = n;
    const FileCallsOverride guard(calls);
    try {
      const Checkpoint checkpoint(model);
      OwnedTable owned(checkpoint, false);
      checkpoint.read_weights(owned.table, Pool(1));
      if (!calls.failed()) break;
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::storage);
      ++failures;
    }
  }
  CHECK(failures > 10);
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
