// A Hugging Face checkpoint directory: config.json, safetensors in one file or in shards, and what
// else is copied into a result.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/hash.h"
#include "base/pool.h"
#include "model/family.h"
#include "model/parameter_table.h"
#include "model/safetensors.h"

namespace hearth {

/// Where a tensor lies.
struct TensorLocation {
  int file = 0;  // index into files()
  SafetensorsEntry entry;
};

/// Opened and checked: names against shards, every tensor of the table present with its shape, no
/// unknown one. Reads no tensor data.
class Checkpoint {
 public:
  /// Input errors name file, tensor or key. `follow_links` as CLI.md 10 says.
  explicit Checkpoint(const std::string& directory, bool follow_links = false);

  const std::string& directory() const { return directory_; }
  const Json& config() const { return config_; }
  const Family& family() const { return *family_; }
  const ModelSpec& spec() const { return spec_; }
  const std::vector<std::unique_ptr<SafetensorsFile>>& files() const { return files_; }
  /// The table of this checkpoint, with the stored types.
  ParameterTable make_table() const;
  const TensorLocation& location(const std::string& tensor) const;

  /// Fills the home copy (master if present, else stored) of every tensor of the table, converting,
  /// in pieces through a small buffer; also working copies. A weight that is not finite is an input
  /// error naming tensor and index.
  void read_weights(ParameterTable& table, const Pool& pool) const;

  /// Identity of the content: XXH3 of config.json and of every weight file, by file name.
  std::vector<std::pair<std::string, Digest>> digests() const;
  /// Tokenizer files, generation_config.json and others that a result carries along (names).
  std::vector<std::string> companion_files() const;

 private:
  std::string directory_;
  Json config_;
  const Family* family_ = nullptr;
  ModelSpec spec_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, TensorLocation> locations_;
};

/// Writes the table's weights as a checkpoint in the names, types, shapes and shard plan of `base`,
/// with config.json and companion files copied, into `directory` (must not exist; appears by one
/// rename, durable). Then reads it back and compares. Rounds once, from the master.
void write_checkpoint(const ParameterTable& table, const Checkpoint& base,
                      const std::string& directory);

/// A random checkpoint for a config.json in its family's published layout: matrices normal with
/// initializer_range, drawn by (seed, tensor name, index); norms one; biases zero. `dtype` from the
/// config (torch_dtype or dtype; f32 if absent). Tokenizer files are copied from `tokenizer`
/// unless it is empty. The directory must not exist.
void init_checkpoint(const std::string& config_path, const std::string& directory, uint64_t seed,
                     const std::string& tokenizer);

}  // namespace hearth
