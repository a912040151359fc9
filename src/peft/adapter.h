// PEFT adapter directories (docs/adapters.md): adapter_model.safetensors and adapter_config.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/pool.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"
#include "model/parameter_table.h"
#include "peft/config.h"

namespace hearth {

/// How a directory stores the pairs of experts: one pair per matrix under the published names, or,
/// like PEFT on transformers 5, two fused pairs per layer.
enum class AdapterLayout : uint8_t { per_expert, fused };

/// Identity of a base model: the root of `digest_checkpoint`. Reads every weight.
Digest base_digest(const Checkpoint& base);

struct AdapterReadOptions {
  bool accept_other_base = false;
  bool fused_as_peft = false;  // the user says: packed as PEFT does since 0.19.1
  bool follow_links = false;
  std::optional<Digest> base_digest = {};  // if already known
};

/// An opened PEFT directory, written by this program or by PEFT in either layout.
class AdapterFile {
 public:
  /// Opens the directory and checks it against its base. Reads no tensor data except copies of the
  /// base's tensors, and reads the base if its digest is needed. Input error, naming file and
  /// setting or tensor, for
  ///   - settings that AdapterConfig refuses
  ///   - unknown tensors, half a pair, and shapes that do not fit the base and the settings
  ///   - targets that are not exactly the matrices with tensors
  ///   - another base than the base of the training
  ///   - fused tensors whose packing is unknown
  AdapterFile(const std::string& directory, const Checkpoint& base,
              const AdapterReadOptions& options = {});

  const std::string& directory() const { return directory_; }
  const AdapterConfig& config() const { return config_; }
  /// The adapter's file names, with the digests of their bytes.
  std::vector<std::pair<std::string, Digest>> digests() const;

  /// Adds the pairs to a table of the base that has no adapters yet. A block has one scale; if the
  /// file has several scales in a block, `read` folds the difference into B.
  void add_to(ParameterTable& table) const;
  /// Reads the pairs into that table, which must be bound to memory. Also reads the model's tensors
  /// that the adapter replaces (modules_to_save; `add_to` marks them as trainable). So read the
  /// base's weights first. Input error for a value that is not finite, or a padding value of this
  /// program's files that is not zero.
  void read(ParameterTable& table) const;

 private:
  friend class AdapterOpener;
  void read_replaced(ParameterTable& table) const;

  /// The elements of a stored tensor that form one tensor of the table: from (row, column) on,
  /// columns `step` apart. Elements of B are multiplied by `factor`.
  struct Part {
    TensorId matrix = 0;
    bool is_b = false;
    int64_t row = 0, column = 0, step = 1;
    int64_t rows = 0, columns = 0;
    double factor = 1;
  };
  /// A stored tensor. Elements that no part covers must be zero.
  struct Source {
    size_t entry = 0;
    std::vector<Part> parts;
  };
  struct Pair {
    TensorId matrix = 0;
    int64_t rank = 0;
    double scale = 0;
  };

  std::string directory_;
  AdapterConfig config_;
  SafetensorsFile file_;
  std::vector<Source> sources_;
  std::vector<Pair> pairs_;                            // by matrix
  std::vector<std::pair<size_t, TensorId>> replaced_;  // entries, tensors of the model
};

/// An adapter with its own memory, without the weights of its base. For write_merged and
/// write_adapter.
struct LoadedAdapter {
  ParameterTable table;
  std::vector<float> memory;

  /// Allocates zeroed homes for the trained tensors of a table that has adapters.
  explicit LoadedAdapter(ParameterTable trained);
  LoadedAdapter(const AdapterFile& file, const Checkpoint& base);
};

}  // namespace hearth
