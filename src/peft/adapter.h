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

/// How the pairs of experts are stored: one by one under the published names, or as PEFT has them
/// on transformers 5, those of a layer packed into two.
enum class AdapterLayout : uint8_t { per_expert, fused };

/// Identity of a base: the root of `digest_checkpoint`. Reads every weight.
Digest base_digest(const Checkpoint& base);

struct AdapterReadOptions {
  bool accept_other_base = false;
  bool fused_as_peft = false;  // fused tensors are packed as PEFT does since 0.19.1, says the user
  bool follow_links = false;
  std::optional<Digest> base_digest = {};  // where it is known already
};

/// An opened PEFT directory: this program's, or PEFT's in either layout.
class AdapterFile {
 public:
  /// Opened and checked against its base; reads no tensor data but copies of
  /// the base's tensors, and the base where its digest is asked for. Input errors name file and
  /// setting or tensor: what AdapterConfig refuses, tensors that are unknown, without their other
  /// half or of another shape than the base's matrices and the settings ask for, targets that are
  /// not exactly the matrices with tensors, another base than the one it was trained on, fused
  /// tensors whose packing nothing tells.
  AdapterFile(const std::string& directory, const Checkpoint& base,
              const AdapterReadOptions& options = {});

  const std::string& directory() const { return directory_; }
  const AdapterConfig& config() const { return config_; }
  /// Names of the files that it consists of, with the digests of their bytes.
  std::vector<std::pair<std::string, Digest>> digests() const;

  /// Adds the pairs to a table of the base that has no adapters yet. A block has one scale; where
  /// the file has several in a block, `read` folds the rest into B.
  void add_to(ParameterTable& table) const;
  /// Fills the homes of the pairs of that table, bound to memory, and those of the model's tensors
  /// that it replaces (modules_to_save; `add_to` marks them as trainable), so after the base's
  /// weights were read. Input errors: a value that is not finite, one that should be zero (what
  /// this program's own files fill up with).
  void read(ParameterTable& table) const;

 private:
  friend class AdapterOpener;
  void read_replaced(ParameterTable& table) const;

  /// Elements of a stored tensor that make up one of the table's, from (row, column) on, columns
  /// `step` apart; those of B times `factor`.
  struct Part {
    TensorId matrix = 0;
    bool is_b = false;
    int64_t row = 0, column = 0, step = 1;
    int64_t rows = 0, columns = 0;
    double factor = 1;
  };
  /// A stored tensor. What no part covers is zero.
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

/// An adapter in memory of its own, without the weights of its base: for write_merged and
/// write_adapter.
struct LoadedAdapter {
  ParameterTable table;
  std::vector<float> memory;

  /// Homes for what is trained in a table that has adapters, zero.
  explicit LoadedAdapter(ParameterTable trained);
  LoadedAdapter(const AdapterFile& file, const Checkpoint& base);
};

}  // namespace hearth
