// Sums the changes of tensors by group (as users name groups) and by expert.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "verdict/routing.h"
#include "verdict/weight_change.h"

namespace hearth {

/// The trained tensors of one kind in a group: weights of the model, or A, or B, of its adapters.
struct PartMovement {
  std::string group;
  Factor factor = Factor::none;
  int64_t tensors = 0, moved = 0, parameters = 0;
  double start_norm = 0, update_norm = 0;
  std::string first_unmoved = {};

  /// "experts", "A of experts".
  std::string name() const;
};
/// In the order of trained_groups; within a group weights, A, B.
std::vector<PartMovement> movement_by_part(const ParameterTable& table,
                                           const std::vector<TensorChange>& changes);

/// What became of the trained experts.
struct ExpertMovement {
  int64_t trained = 0, moved = 0;
  // Experts that did not move:
  std::vector<int64_t> without_tokens;  // got no token; by MoE layer
  int64_t without_gradient = 0;         // perhaps got only tokens without a gradient
  std::vector<std::string> forgotten;   // certainly got a gradient: one tensor of each expert
  // Experts of which some tensors moved: the first tensor of each that did not.
  std::vector<std::string> in_part;
};
ExpertMovement movement_of_experts(const ParameterTable& table,
                                   const std::vector<TensorChange>& changes,
                                   const Routing& routing);

}  // namespace hearth
