// The two files of a PEFT directory beside a small base in memory: four bytes (words of data, bytes of
// adapter_config.json, both little endian), adapter_config.json, the header of adapter_model.safetensors.
// Refused with an input error, or accepted: then what is written from it reads back the same, bit for
// bit but for B, which takes one scale.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/file_ops.h"
#include "checkpoint/checkpoint_init.h"
#include "peft/adapter.h"
#include "peft/names.h"
#include "peft/targets.h"
#include "peft/write.h"
#include "support/bounded.h"
#include "support/json_mutator.h"
#include "support/memory_disk.h"

namespace {

using namespace hearth;

const std::string kRoot = "/adapters-in-memory";
constexpr size_t kLengths = 4;

void require(bool holds) {
  if (!holds) std::abort();
}

/// A base with everything that can have a pair.
struct World {
  test::MemoryDisk disk{kRoot};
  FileCallsOverride in_memory{disk};
  std::optional<Checkpoint> base;
  Digest digest;

  World() {
    make_directory(kRoot);
    write_file_atomically(kRoot + "/config.json", R"({"model_type": "qwen2_moe",
      "vocab_size": 259, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
      "num_key_value_heads": 1, "intermediate_size": 4, "moe_intermediate_size": 4,
      "shared_expert_intermediate_size": 4, "num_experts": 3, "num_experts_per_tok": 2,
      "mlp_only_layers": [1], "max_position_embeddings": 64, "rms_norm_eps": 1e-6,
      "rope_theta": 10000.0, "tie_word_embeddings": false, "torch_dtype": "float32"})");
    init_checkpoint(kRoot + "/config.json", kRoot + "/base", 3, "");
    base.emplace(kRoot + "/base");
    digest = base_digest(*base);
    make_directory(kRoot + "/given");
  }
};

struct Parts {
  size_t data = 0;  // bytes
  std::string_view config, header;
};

Parts split(std::string_view input) {
  if (input.size() < kLengths) return {};
  const auto number = [&](size_t at) {
    return static_cast<uint8_t>(input[at]) + size_t{256} * static_cast<uint8_t>(input[at + 1]);
  };
  const size_t config = std::min(number(2), input.size() - kLengths);
  return {4 * number(0), input.substr(kLengths, config), input.substr(kLengths + config)};
}

std::string change_part(std::string_view input, uint32_t seed) {
  const Parts parts = split(input);
  if (input.size() < kLengths) return std::string(input);
  const bool of_config = seed % 2 == 0;
  const std::string config =
      of_config ? test::mutate_json(parts.config, seed / 2) : std::string(parts.config);
  if (config.size() > 65535) return std::string(input);
  std::string out(input.substr(0, 2));
  out += static_cast<char>(config.size() % 256);
  out += static_cast<char>(config.size() / 256);
  return out + config +
         (of_config ? std::string(parts.header) : test::mutate_json(parts.header, seed / 2));
}

/// Halves and zeros in every float type, the first word of 16 zero.
std::string some_data(size_t bytes) {
  std::string data(bytes, '\0');
  for (size_t i = 3; i < bytes; i += 4) data[i] = i / 4 % 16 == 0 ? '\0' : '\x3f';
  return data;
}

void give(const Parts& parts) {
  uint64_t length = parts.header.size();
  std::string weights(sizeof length, '\0');
  std::memcpy(weights.data(), &length, sizeof length);
  weights += parts.header;
  weights += some_data(parts.data);
  write_file_atomically(kRoot + "/given/" + kAdapterConfig, std::string(parts.config));
  write_file_atomically(kRoot + "/given/" + kAdapterWeights, weights);
}

/// The pairs and what stands there whole.
void compare(const ParameterTable& before, const ParameterTable& after) {
  require(before.tensors().size() == after.tensors().size());
  for (size_t i = 0; i < before.tensors().size(); ++i) {
    const Tensor &a = before.tensors()[i], &b = after.tensors()[i];
    require(a.name == b.name && a.rows == b.rows && a.cols == b.cols && a.trainable == b.trainable);
    if (!a.trainable) continue;
    const double from = a.factor == Factor::b ? before.block(a.block).scale : 1;
    const double to = a.factor == Factor::b ? after.block(b.block).scale : 1;
    const auto* x = View{a.home().view}.as<float>();
    const auto* y = View{b.home().view}.as<float>();
    for (int64_t k = 0; k < a.size(); ++k) {
      const double was = from * static_cast<double>(x[k]), is = to * static_cast<double>(y[k]);
      require(std::abs(was - is) <= 1e-6 * std::abs(was) + 1e-30);
    }
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return hearth::test::mutate_input(data, size, most, seed, change_part);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World world;
  const Parts parts = split({reinterpret_cast<const char*>(data), size});
  give(parts);
  AdapterReadOptions options;
  options.base_digest = world.digest;
  options.fused_as_peft = size % 2 == 0;
  std::optional<LoadedAdapter> read;
  try {
    const test::Bounded bound(size + parts.data, {.times = 64, .bytes = uint64_t{4} << 20});
    const AdapterFile file(kRoot + "/given", *world.base, options);
    read.emplace(file, *world.base);
  } catch (const Error& error) {
    require(error.code() == ExitCode::input);
  }
  if (read) {
    AdapterFileOptions write;
    write.base_digest = world.digest;
    const std::string written = kRoot + "/written";
    bool storable = true;
    try {
      require_storable(read->table, world.base->family());
      write_adapter(read->table, *world.base, write, written);
    } catch (const Error& error) {  // of what is trained whole; scales that overflow
      require(error.code() == ExitCode::usage || error.code() == ExitCode::numeric);
      storable = false;
    }
    if (storable) {
      options.fused_as_peft = false;
      const LoadedAdapter again(AdapterFile(written, *world.base, options), *world.base);
      compare(read->table, again.table);
      remove_tree(written);
    }
  }
  world.disk.settle();
  return 0;
}
