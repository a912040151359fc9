#include "checkpoint/checkpoint_init.h"

#include <algorithm>
#include <cstdio>
#include <thread>
#include <vector>

#include "base/error_format.h"
#include "base/pool.h"
#include "base/random.h"
#include "base/setting.h"
#include "base/stop.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/model_files.h"
#include "checkpoint/new_directory.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/weight_index.h"
#include "model/weight_copy.h"

namespace hearth {
namespace {

constexpr int64_t kShardBytes = 5'000'000'000;

constexpr const char* kTokenizerFiles[] = {
    "tokenizer.json", "tokenizer_config.json",   "tokenizer.model",     "vocab.json",
    "merges.txt",     "special_tokens_map.json", "chat_template.jinja", "added_tokens.json",
    "vocab.txt",      "chat_template.json",
};

using Shard = std::vector<TensorId>;

std::vector<Shard> shard_plan(const ParameterTable& table, DType type) {
  std::vector<Shard> shards;
  int64_t bytes = 0;
  for (TensorId id = 0; id < static_cast<TensorId>(table.tensors().size()); ++id) {
    const int64_t size = table.tensor(id).size() * static_cast<int64_t>(size_of(type));
    if (shards.empty() || bytes + size > kShardBytes) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().push_back(id);
    bytes += size;
  }
  return shards;
}

std::string shard_name(size_t index, size_t count) {
  if (count == 1) return "model.safetensors";
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", index + 1, count);
  return name;
}

bool is_norm(Slot slot) {
  return slot == Slot::input_norm || slot == Slot::q_norm || slot == Slot::k_norm ||
         slot == Slot::post_norm || slot == Slot::final_norm;
}

/// Element i of a matrix is initializer_range times the i-th normal number of (seed, tensor name).
void draw(const Tensor& tensor, double deviation, uint64_t seed, int64_t begin, int64_t n,
          float* out) {
  if (tensor.vector) {
    std::fill_n(out, n, is_norm(tensor.slot) ? 1.0f : 0.0f);
    return;
  }
  const uint64_t key = name_key(tensor.name);
  const Random random(seed, RandomSite::init, static_cast<uint32_t>(key),
                      static_cast<uint32_t>(key >> 32));
  for (int64_t i = 0; i < n; ++i) {
    out[i] = static_cast<float>(deviation * random.normal(static_cast<uint64_t>(begin + i)));
  }
}

void write_shard(const ParameterTable& table, const Shard& shard, DType type, double deviation,
                 uint64_t seed, const std::string& path) {
  std::vector<SafetensorsEntry> entries;
  for (const TensorId id : shard) {
    const Tensor& tensor = table.tensor(id);
    SafetensorsEntry entry;
    entry.name = tensor.name;
    entry.dtype = safetensors_name(type);
    entry.shape = tensor.vector ? std::vector{tensor.cols} : std::vector{tensor.rows, tensor.cols};
    entries.push_back(std::move(entry));
  }
  SafetensorsWriter writer(path, std::move(entries), {});
  // Numbers are functions of their place, so workers share a piece.
  constexpr int64_t kTile = 16384;
  const Pool pool(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  std::vector<float> values(kPieceElements), stored(kPieceElements);
  for (const TensorId id : shard) {
    const Tensor& tensor = table.tensor(id);
    for (int64_t begin = 0; begin < tensor.size(); begin += kPieceElements) {
      leave_if_stopped("the checkpoint was made");
      const int64_t n = std::min(kPieceElements, tensor.size() - begin);
      pool.run((n + kTile - 1) / kTile, [&](int64_t tile, int) {
        const int64_t from = tile * kTile;
        draw(tensor, deviation, seed, begin + from, std::min(kTile, n - from),
             values.data() + from);
      });
      convert(DType::f32, values.data(), type, stored.data(), n);
      writer.write(stored.data(), static_cast<size_t>(n) * size_of(type));
    }
  }
  writer.close();
}

void write_index(const ParameterTable& table, const std::vector<Shard>& shards, DType type,
                 const std::string& directory) {
  WeightMap map;
  int64_t parameters = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    for (const TensorId id : shards[i]) {
      map.emplace_back(table.tensor(id).name, shard_name(i, shards.size()));
      parameters += table.tensor(id).size();
    }
  }
  OutputFile file(directory + "/model.safetensors.index.json");
  const std::string text = weight_index_text(std::move(map), parameters,
                                             parameters * static_cast<int64_t>(size_of(type)));
  file.write(text.data(), text.size());
  file.close();
}

/// The tokenizer files of a directory; input error where it has none.
std::vector<std::string> tokenizer_files(const std::string& directory) {
  if (file_info(directory).kind != FileKind::directory) {
    throw input_error("{}: expected a directory", spelled(Setting::tokenizer, quoted(directory)));
  }
  std::vector<std::string> files;
  for (const char* name : kTokenizerFiles) {
    if (has_model_file(directory, name)) files.emplace_back(name);
  }
  if (files.empty()) {
    throw input_error("{}: no tokenizer files in it; expected at least {}",
                      spelled(Setting::tokenizer, quoted(directory)), kTokenizerFiles[0]);
  }
  for (std::string& name : template_files(directory)) files.push_back(std::move(name));
  return files;
}

}  // namespace

void init_checkpoint(const std::string& config_path, const std::string& directory, uint64_t seed,
                     const std::string& tokenizer) {
  const Json config = read_json_file(config_path, kMaxConfigBytes);
  const Family& family = family_of(config, config_path);
  const ModelSpec spec = family.read_config(config, config_path);
  const DType type = config_dtype(config, config_path).value_or(DType::f32);
  const ParameterTable table = family.make_table(spec);
  const std::vector<std::string> companions =
      tokenizer.empty() ? std::vector<std::string>{} : tokenizer_files(tokenizer);

  NewDirectory result(directory);
  const std::vector<Shard> shards = shard_plan(table, type);
  for (size_t i = 0; i < shards.size(); ++i) {
    write_shard(table, shards[i], type, spec.initializer_range, seed,
                result.path() + "/" + shard_name(i, shards.size()));
  }
  if (shards.size() > 1) write_index(table, shards, type, result.path());
  copy_file(config_path, result.path() + "/config.json");
  for (const std::string& name : companions) {
    result.copy(model_file(tokenizer, name, false), name);
  }
  const Checkpoint check(result.path());
  result.publish();
}

}  // namespace hearth
