// Small models and raw files for the tests of the model room.
#pragma once

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_init.h"
#include "checkpoint/safetensors_writer.h"
#include "model/parameter_memory.h"

namespace hearth::test {

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The bytes of a safetensors file with this header text.
inline std::string raw_safetensors(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  return out + header + data;
}

/// The message of the input error (or error of another code) that the action ends in; empty if it
/// ends well.
inline std::string error_of(const std::function<void()>& action, ExitCode code = ExitCode::input) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(static_cast<int>(error.code()) == static_cast<int>(code));
    CHECK(std::string(error.what()).size() < 2000);
    return error.what();
  }
  return "";
}

/// Three layers: the first two with experts unless changed, the last dense.
inline Json small_config() {
  return parse_json(R"({"model_type": "qwen3_moe", "vocab_size": 11, "hidden_size": 6,
    "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4,
    "rms_norm_eps": 1e-6, "max_position_embeddings": 64, "rope_theta": 10000.0,
    "num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 5,
    "intermediate_size": 7, "mlp_only_layers": [2], "initializer_range": 0.5,
    "torch_dtype": "float32"})",
                    "small");
}

inline Json changed(Json config, const std::string& key, Json value) {
  config[key] = std::move(value);
  return config;
}

inline Json without(const Json& config, const std::string& key) {
  JsonObject members = config.as_object();
  std::erase_if(members, [&](const auto& member) { return member.first == key; });
  return members;
}

/// A random checkpoint of a config at `directory`; config.json's text is the compact dump.
inline void make_checkpoint(const Json& config, const std::string& directory, uint64_t seed = 7) {
  const std::string path = directory + ".config.json";
  write_text(path, config.dump());
  init_checkpoint(path, directory, seed, "");
}

/// A table with memory of its own.
struct OwnedTable {
  ParameterTable table;
  std::vector<std::vector<std::byte>> arenas;

  OwnedTable(const Checkpoint& checkpoint, bool training, Compute compute = Compute::f32)
      : table(checkpoint.make_table()) {
    CopyPolicy policy;
    policy.training = training;
    policy.compute = compute;
    for (Tensor& tensor : table.tensors()) tensor.trainable = training;
    std::array<std::byte*, kCopyRoles> at = {};
    for (const ParameterArena& arena : parameter_arenas(table, policy)) {
      arenas.emplace_back(arena.bytes);
      at[static_cast<size_t>(arena.role)] = arenas.back().data();
    }
    bind_parameters(table, policy, at);
  }
};

/// Splits a checkpoint of one file into shards of `tensors` tensors each, with an index.
inline void shard(const std::string& directory, size_t tensors) {
  const SafetensorsFile source(directory + "/model.safetensors");
  const auto& entries = source.header().entries;
  const size_t count = (entries.size() + tensors - 1) / tensors;
  JsonObject map;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = "model-" + std::to_string(i) + ".safetensors";
    const std::vector<SafetensorsEntry> part(
        entries.begin() + static_cast<std::ptrdiff_t>(i * tensors),
        entries.begin() + static_cast<std::ptrdiff_t>(std::min(entries.size(), (i + 1) * tensors)));
    SafetensorsWriter writer(directory + "/" + name, part, {});
    for (const auto& entry : part) {
      std::string data(entry.end - entry.begin, '\0');
      source.read(entry, data.data(), data.size(), 0);
      writer.write(data.data(), data.size());
      map.emplace_back(entry.name, name);
    }
    writer.close();
  }
  write_text(directory + "/model.safetensors.index.json",
             Json(JsonObject{{"metadata", JsonObject{}}, {"weight_map", std::move(map)}}).dump(2));
  remove_file(directory + "/model.safetensors");
}

inline ModelSpec read_config(const Json& config) {
  return family_of(config, "config.json").read_config(config, "config.json");
}
/// The message that refuses it.
inline std::string refused(const Json& config) {
  return error_of([&] { read_config(config); });
}

/// The same with a value, given as JSON text, for a key.
inline ModelSpec read_config(const Json& config, const std::string& key, const std::string& value) {
  return read_config(changed(config, key, parse_json(value, "value")));
}
inline std::string refused(const Json& config, const std::string& key, const std::string& value) {
  return refused(changed(config, key, parse_json(value, "value")));
}

inline bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace hearth::test
