// Adapters (LoRA, arXiv 2106.09685): which matrices of a model get a low-rank pair, with which rank
// and scale. A pair adds scale * B A to its matrix; training never forms B A.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/parameter_table.h"
#include "model/published_layout.h"

namespace hearth {

/// The experts that get adapters, by layer; empty: all experts.
using ExpertChoice = std::vector<std::vector<int32_t>>;

struct AdapterOptions {
  int64_t rank = 16;
  int64_t expert_rank = 16;  // of routed experts
  double alpha = 32;
  bool rslora = false;  // scale is alpha / sqrt(rank) (arXiv 2312.03732), else alpha / rank
  /// Groups (attention, experts, shared-experts, dense, router, head; all: the first four) or globs on
  /// tensor names.
  std::vector<std::string> targets = {"attention", "experts"};
  std::vector<std::string> freeze = {};  // globs on the names of matrices that get no pair
  ExpertChoice experts = {};

  double scale_of(int64_t of_rank) const;
};

/// Adds adapters for the targets to a table that has no adapters. Globs match the checkpoint's
/// names, and the names of single experts in any layout. Usage error if a target matches nothing or
/// a tensor that is not a linear map, if it is a head tied to the embedding, or if all targets are
/// frozen.
void add_adapters(ParameterTable& table, const PublishedLayout& layout,
                  const AdapterOptions& options);

/// Initialises all pairs by (seed, tensor name, index): A uniform in +-1 / sqrt(in), like PEFT; B
/// zero. The table must be bound to memory.
void init_adapters(ParameterTable& table, uint64_t seed);

/// Whether the table has adapters.
bool has_adapters(const ParameterTable& table);

/// The user's name for the group of a tensor (attention, experts, ..., norms, head). A pair belongs
/// to its base's group.
std::string_view report_group(const ParameterTable& table, const Tensor& tensor);

/// A group of tensors, with total and trained counts.
struct TrainedGroup {
  std::string name;
  int64_t tensors = 0, parameters = 0;                  // of the model
  int64_t trained_tensors = 0, trained_parameters = 0;  // of the model and its adapters
};
/// The groups that have tensors, in the order embedding, attention, router, experts,
/// shared-experts, dense, norms, head.
std::vector<TrainedGroup> trained_groups(const ParameterTable& table);

}  // namespace hearth
