// How a checkpoint stores the tensors of the parameter table: under which names, and which tensors
// are fused into one. The table has one set of tensors per expert. A checkpoint has the same, or
// fuses a layer's experts, as transformers 5 does in memory:
//
//   mlp.experts.gate_up_proj [experts, 2 * width, hidden]   of each expert gate, then up
//   mlp.experts.down_proj    [experts, hidden, width]
//
// Reading, writing, inspection and user globs use published tensors. Layers, optimizer and saved
// state use only the table.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/family.h"
#include "model/parameter_table.h"

namespace hearth {

/// A tensor as a checkpoint stores it: the concatenated elements of `parts`, which are whole
/// tensors of the table with one stored type.
struct PublishedTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<TensorId> parts;
};

/// How a checkpoint stores its experts. `mixed`: layers differ.
enum class ExpertLayout : uint8_t { per_expert, fused, mixed };

class PublishedLayout {
 public:
  /// Whether the checkpoint has a tensor of this name.
  using Stored = std::function<bool(const std::string&)>;

  PublishedLayout() = default;
  /// Decides by names, layer by layer; the caller checks shapes. A tensor that is not stored is
  /// listed under its expected name. Input error, naming `source` and the tensors, if a layer has
  /// experts in both layouts or a tensor has two names.
  PublishedLayout(const ParameterTable& table, const Family& family, const Stored& stored,
                  const std::string& source);

  /// In table order. Every tensor of the table is a part of exactly one published tensor.
  const std::vector<PublishedTensor>& tensors() const { return tensors_; }
  /// By published name; null if absent.
  const PublishedTensor* find(std::string_view name) const;
  ExpertLayout experts() const;

 private:
  friend class LayoutDetector;
  void add(std::string name, std::vector<int64_t> shape, std::vector<TensorId> parts);

  std::vector<PublishedTensor> tensors_;
  std::unordered_map<std::string, size_t> by_name_;
  bool has_fused_ = false;
  bool has_per_expert_ = false;
};

/// Upper bound on how many table tensors one stored tensor can expand to, from its name and first
/// dimension. The header is not validated yet, so the bound never exceeds what `bytes` allow.
int64_t parts_bound(const std::string& name, const std::vector<int64_t>& shape, uint64_t bytes);

}  // namespace hearth
