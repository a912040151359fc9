// Adapters (LoRA, arXiv 2106.09685): which matrices of a model get a low-rank pair, of which rank
// and scale. A pair adds scale * B A to its matrix; B A is never formed in training.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/parameter_table.h"
#include "model/published_layout.h"

namespace hearth {

/// The experts of each layer that get adapters; empty: all of them.
using ExpertChoice = std::vector<std::vector<int32_t>>;

struct AdapterOptions {
  int64_t rank = 16;
  int64_t expert_rank = 16;  // of routed experts
  double alpha = 32;
  bool rslora = false;  // scale alpha / sqrt(rank) (arXiv 2312.03732), else alpha / rank
  /// Groups (attention, experts, shared-experts, dense, router, head) or globs on tensor names.
  std::vector<std::string> targets = {"attention", "experts"};
  std::vector<std::string> freeze = {};  // globs on tensor names: matrices that get none
  ExpertChoice experts = {};

  double scale_of(int64_t of_rank) const;
};

/// Adds the adapters of the targets to a table that has none. Globs see the names of the checkpoint
/// and those of experts one by one, whatever the layout. Usage errors: a target that matches
/// nothing, or a tensor that is no linear map; the head of a model whose head is its embedding; no
/// target that is not frozen.
void add_adapters(ParameterTable& table, const PublishedLayout& layout,
                  const AdapterOptions& options);

/// Fills the homes of all pairs: A uniform in +-1 / sqrt(in) (what PEFT draws from), by (seed, name
/// of the tensor, index); B zero. The table is bound to memory.
void init_adapters(ParameterTable& table, uint64_t seed);

/// Whether the table has adapters.
bool has_adapters(const ParameterTable& table);

/// The group of a tensor as users name it (attention, experts, ..., norms, head), that of its base
/// for a pair's.
std::string_view report_group(const ParameterTable& table, const Tensor& tensor);

/// A group of tensors, what it has, and what is trained of it.
struct TrainedGroup {
  std::string name;
  int64_t tensors = 0, parameters = 0;                  // of the model
  int64_t trained_tensors = 0, trained_parameters = 0;  // of the model and of its adapters
};
/// In the order embedding, attention, router, experts, shared-experts, dense, norms, head; those
/// without a tensor left out.
std::vector<TrainedGroup> trained_groups(const ParameterTable& table);

}  // namespace hearth
