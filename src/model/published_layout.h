// How a checkpoint stores the tensors of the parameter table: under which names, and which of them
// together as one. The table has the experts of a layer one by one; a checkpoint has them one by
// one, too, or fused as transformers 5 holds them in memory:
//
//   mlp.experts.gate_up_proj [experts, 2 * width, hidden]   of each expert gate, then up
//   mlp.experts.down_proj    [experts, hidden, width]
//
// Reading, writing, inspection and the globs of users go by published tensors; layers, optimizer
// and saved state know the table alone.
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

/// A tensor as a checkpoint stores it: the elements of `parts`, each a whole tensor of the table,
/// one after the other. All of one stored type.
struct PublishedTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<TensorId> parts;
};

/// How the experts of a checkpoint are stored; layers may differ.
enum class ExpertLayout : uint8_t { per_expert, fused, mixed };

class PublishedLayout {
 public:
  /// Whether the checkpoint has a tensor of this name.
  using Stored = std::function<bool(const std::string&)>;

  PublishedLayout() = default;
  /// Names alone decide, layer by layer; shapes are for the caller to check. What is not stored is
  /// listed under the name that it should have. Input errors, naming `source` and the tensors: a
  /// layer with experts in both layouts, a tensor under two names.
  PublishedLayout(const ParameterTable& table, const Family& family, const Stored& stored,
                  const std::string& source);

  /// In the order of the table; every tensor of the table is a part of exactly one.
  const std::vector<PublishedTensor>& tensors() const { return tensors_; }
  /// By published name; null if there is none.
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

/// Upper bound on how many table tensors one stored tensor can expand to, by its name and first
/// dimension. Uses only the header, which is not validated yet; never exceeds what the bytes allow.
int64_t parts_bound(const std::string& name, const std::vector<int64_t>& shape, uint64_t bytes);

}  // namespace hearth
