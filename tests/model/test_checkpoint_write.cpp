// Results: equal bytes where nothing changed, one rounding where something did, whole or nothing.
#include <filesystem>

#include "base/random.h"
#include "checkpoint/checkpoint_init.h"
#include "checkpoint/checkpoint_write.h"
#include "checkpoint/safetensors_writer.h"
#include "model_fixtures.h"
#include "support/failing_calls.h"
#include "support/temporary_directory.h"

using namespace hearth;
using namespace hearth::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> files_of(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    names.push_back(entry.path().lexically_relative(directory).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void check_equal(const std::string& a, const std::string& b) {
  CHECK(files_of(a) == files_of(b));
  for (const std::string& name : files_of(a)) {
    INFO(name);
    CHECK(read_text(a + "/" + name) == read_text(b + "/" + name));
  }
}

/// A base with companions; the files beside them are not carried along.
void make_base(const Json& config, const std::string& directory) {
  make_checkpoint(config, directory);
  write_text(directory + "/tokenizer.json", "{}");
  write_text(directory + "/generation_config.json", "{\"eos_token_id\": 1}\n");
  write_text(directory + "/LICENSE", "text");
}

OwnedTable read_master(const Checkpoint& checkpoint) {
  OwnedTable owned(checkpoint, true);
  checkpoint.read_weights(owned.table, Pool(2));
  return owned;
}

}  // namespace

TEST_CASE("write: a result without changes has the base's bytes", "[write]") {
  const TemporaryDirectory directory;
  for (const char* type : {"float32", "bfloat16", "float16"}) {
    for (const bool sharded : {false, true}) {
      INFO(type << (sharded ? " sharded" : ""));
      const std::string name = std::string(type) + (sharded ? "-shards" : "");
      const std::string base = directory / (name + "-base");
      const std::string result = directory / name;
      make_base(changed(small_config(), "torch_dtype", type), base);
      if (sharded) shard(base, 7);
      const Checkpoint checkpoint(base);
      const OwnedTable masters = read_master(checkpoint);
      write_checkpoint(masters.table, checkpoint, result + "/");
      check_equal(base, result);

      OwnedTable stored(checkpoint, false);
      checkpoint.read_weights(stored.table, Pool(1));
      fs::remove_all(result);
      write_checkpoint(stored.table, checkpoint, result);
      check_equal(base, result);
    }
  }
  write_text(directory / "bfloat16-base/README.md", "of the base alone");
  const Checkpoint checkpoint(directory / "bfloat16-base");
  write_checkpoint(read_master(checkpoint).table, checkpoint, directory / "again");
  CHECK_FALSE(fs::exists(directory / "again/README.md"));
  CHECK(fs::exists(directory / "again/LICENSE"));
}

TEST_CASE("write: masters are rounded once to the stored type", "[write]") {
  const TemporaryDirectory directory;
  const std::string base = directory / "base", result = directory / "result";
  make_base(changed(small_config(), "torch_dtype", "bfloat16"), base);
  const Checkpoint checkpoint(base);
  OwnedTable masters = read_master(checkpoint);
  const TensorId id = *masters.table.find("model.layers.1.mlp.experts.2.up_proj.weight");
  const View master = masters.table.view(id, CopyRole::master);
  const Random random(1, RandomSite::init);
  for (int64_t i = 0; i < master.size(); ++i) {
    master.as<float>()[i] = static_cast<float>(random.normal(static_cast<uint64_t>(i)));
  }
  write_checkpoint(masters.table, checkpoint, result);

  const Checkpoint written(result);
  OwnedTable stored(written, false);
  written.read_weights(stored.table, Pool(1));
  const auto* values = stored.table.weight(id).as<bf16>();
  for (int64_t i = 0; i < master.size(); ++i) {
    CHECK(values[i].bits == to_bf16(master.as<float>()[i]).bits);
  }
  const std::string before = read_text(base + "/model.safetensors");
  const std::string after = read_text(result + "/model.safetensors");
  const SafetensorsEntry& entry = checkpoint.location(masters.table.tensor(id).name).entry;
  const uint64_t begin = checkpoint.files()[0]->header().data_begin + entry.begin;
  REQUIRE(before.size() == after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    if (i < begin || i >= begin + (entry.end - entry.begin)) REQUIRE(before[i] == after[i]);
  }
}

TEST_CASE("write: a stored tied head and tensors of no layer stay", "[write]") {
  const TemporaryDirectory directory;
  const std::string base = directory / "base", result = directory / "result";
  make_base(changed(small_config(), "tie_word_embeddings", true), base);
  std::string data;
  {
    const SafetensorsFile file(base + "/model.safetensors");
    std::vector<SafetensorsEntry> entries = file.header().entries;
    SafetensorsEntry head = entries[0];
    REQUIRE(head.name == "model.embed_tokens.weight");
    head.name = "lm_head.weight";
    entries.push_back({"model.rotary_emb.inv_freq", "F64", {2}, 0, 0});
    entries.push_back(head);
    SafetensorsWriter writer(directory / "new", entries, {{"origin", "test"}});
    std::string embedding;
    for (const SafetensorsEntry& entry : file.header().entries) {
      data.resize(entry.end - entry.begin);
      file.read(entry, data.data(), data.size(), 0);
      writer.write(data.data(), data.size());
      if (entry.name == "model.embed_tokens.weight") embedding = data;
    }
    writer.write("0123456789abcdef", 16);
    writer.write(embedding.data(), embedding.size());
    writer.close();
  }
  fs::rename(directory / "new", base + "/model.safetensors");
  const Checkpoint checkpoint(base);
  OwnedTable masters = read_master(checkpoint);
  write_checkpoint(masters.table, checkpoint, result);
  check_equal(base, result);

  masters.table.view(0, CopyRole::master).as<float>()[3] = 0.25f;
  fs::remove_all(result);
  write_checkpoint(masters.table, checkpoint, result);
  const Checkpoint written(result);
  OwnedTable again = read_master(written);  // head and embedding changed together
  CHECK(again.table.weight(0).as<float>()[3] == 0.25f);
}

TEST_CASE("write: an existing target is left alone", "[write]") {
  const TemporaryDirectory directory;
  const std::string base = directory / "base", result = directory / "result";
  make_base(small_config(), base);
  const Checkpoint checkpoint(base);
  const OwnedTable masters = read_master(checkpoint);
  make_directory(result);
  write_text(result + "/mine", "mine");
  CHECK_THAT(
      error_of([&] { write_checkpoint(masters.table, checkpoint, result); }, ExitCode::usage),
      ContainsSubstring("exists already"));
  CHECK(files_of(result) == std::vector<std::string>{"mine"});
  CHECK_FALSE(fs::exists(directory / ".tmp-result"));
}

TEST_CASE("write: a weight that overflows the stored type is a numeric error", "[write]") {
  const TemporaryDirectory directory;
  const std::string base = directory / "base", result = directory / "result";
  make_base(changed(small_config(), "torch_dtype", "float16"), base);
  const Checkpoint checkpoint(base);
  OwnedTable masters = read_master(checkpoint);
  masters.table.view(1, CopyRole::master).as<float>()[2] = 70000.0f;
  const std::string message =
      error_of([&] { write_checkpoint(masters.table, checkpoint, result); }, ExitCode::numeric);
  CHECK_THAT(message, ContainsSubstring("self_attn.q_proj.weight"));
  CHECK_THAT(message, ContainsSubstring("element 2"));
  CHECK_FALSE(fs::exists(result));
  CHECK_FALSE(fs::exists(directory / ".tmp-result"));
}

TEST_CASE("write: whatever call fails, the result is whole or absent", "[write]") {
  const TemporaryDirectory directory;
  const std::string base = directory / "base", result = directory / "result";
  make_base(small_config(), base);
  shard(base, 30);
  const Checkpoint checkpoint(base);
  const OwnedTable masters = read_master(checkpoint);
  int failures = 0;
  for (int n = 1;; ++n) {
    INFO("call " << n);
    bool done = false;
    FailingCalls calls;
    calls.fail_at = n;
    calls.error = n % 2 == 0 ? ENOSPC : EIO;
    {
      const FileCallsOverride guard(calls);
      try {
        write_checkpoint(masters.table, checkpoint, result);
        done = true;
      } catch (const Error& error) {
        CHECK(error.code() == ExitCode::storage);
        ++failures;
      }
    }
    if (fs::exists(result)) {
      check_equal(base, result);
    } else {
      CHECK_FALSE(done);
    }
    fs::remove_all(result);
    fs::remove_all(directory / ".tmp-result");
    if (!calls.failed()) break;
  }
  CHECK(failures > 20);
}

TEST_CASE("write: what the disk hands back is compared", "[write]") {
  // Flips a bit in what the read-back sees of a weight file.
  class LyingCalls : public FileCalls {
   public:
    int64_t pread(int fd, void* buffer, size_t bytes, uint64_t offset) override {
      const int64_t n = FileCalls::pread(fd, buffer, bytes, offset);
      if (armed && n > 100) static_cast<char*>(buffer)[n - 1] ^= 1;
      return n;
    }
    bool armed = true;
  };
  const TemporaryDirectory directory;
  const std::string base = directory / "base", result = directory / "result";
  make_base(small_config(), base);
  const Checkpoint checkpoint(base);
  const OwnedTable masters = read_master(checkpoint);
  LyingCalls calls;
  const FileCallsOverride guard(calls);
  CHECK_THAT(
      error_of([&] { write_checkpoint(masters.table, checkpoint, result); }, ExitCode::storage),
      ContainsSubstring("reads back differently"));
  calls.armed = false;
  CHECK_FALSE(fs::exists(result));
}

TEST_CASE("init: weights are a function of seed and tensor name", "[init]") {
  const TemporaryDirectory directory;
  const Json config = changed(small_config(), "attention_bias", true);
  make_checkpoint(config, directory / "a", 5);
  make_checkpoint(config, directory / "b", 5);
  make_checkpoint(config, directory / "c", 6);
  make_checkpoint(changed(config, "num_hidden_layers", 2), directory / "d", 5);
  check_equal(directory / "a", directory / "b");
  CHECK(read_text(directory / "a/config.json") == config.dump());
  CHECK_FALSE(fs::exists(directory / ".tmp-a"));

  const Checkpoint a(directory / "a"), c(directory / "c"), d(directory / "d");
  const OwnedTable first = read_master(a), other = read_master(c), fewer = read_master(d);
  for (const Tensor& tensor : first.table.tensors()) {
    INFO(tensor.name);
    const TensorId id = *first.table.find(tensor.name);
    const auto* x = first.table.weight(id).as<float>();
    if (const auto same = fewer.table.find(tensor.name)) {
      CHECK(std::equal(x, x + tensor.size(), fewer.table.weight(*same).as<float>()));
    }
    const bool equal = std::equal(x, x + tensor.size(), other.table.weight(id).as<float>());
    CHECK(equal == tensor.vector);
    if (tensor.vector) {
      const float expected = tensor.name.ends_with(".bias") ? 0.0f : 1.0f;
      CHECK(std::all_of(x, x + tensor.size(), [=](float value) { return value == expected; }));
      continue;
    }
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      sum += x[i];
      squares += static_cast<double>(x[i]) * x[i];
    }
    const auto n = static_cast<double>(tensor.size());
    CHECK(std::abs(sum / n) < 0.5 * 5 / std::sqrt(n));  // five standard errors of the mean
    CHECK(std::abs(squares / n / 0.25 - 1) < 5 * std::sqrt(2 / n));
  }
}

TEST_CASE("init: tokenizer files are carried along, bad configs leave nothing", "[init]") {
  const TemporaryDirectory directory;
  make_directory(directory / "tokenizer");
  write_text(directory / "tokenizer/tokenizer.json", "{\"a\": 1}");
  write_text(directory / "tokenizer/model.safetensors", "other weights");
  write_text(directory / "config.json", small_config().dump());
  init_checkpoint(directory / "config.json", directory / "m", 1, directory / "tokenizer");
  CHECK(files_of(directory / "m") ==
        std::vector<std::string>{"config.json", "model.safetensors", "tokenizer.json"});
  CHECK_THAT(error_of([&] { init_checkpoint(directory / "config.json", directory / "m", 1, ""); },
                      ExitCode::usage),
             ContainsSubstring("exists already"));
  write_text(directory / "bad.json", without(small_config(), "vocab_size").dump());
  CHECK_THAT(error_of([&] { init_checkpoint(directory / "bad.json", directory / "n", 1, ""); }),
             ContainsSubstring("vocab_size is missing"));
  CHECK_FALSE(fs::exists(directory / "n"));
  CHECK_FALSE(fs::exists(directory / ".tmp-n"));
}
