// Sums the changes of tensors by group (named as in options) and by expert.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "verdict/routing.h"
#include "verdict/weight_change.h"

namespace hearth {

/// The trained tensors of one kind in a group: weights of the model, or adapter factors A or B.
struct PartMovement {
  std::string group;
  Factor factor = Factor::none;
  int64_t tensors = 0, moved = 0, parameters = 0;
  double start_norm = 0, update_norm = 0;
  std::string first_unmoved = {};

  /// "experts", "A of experts".
  std::string name() const;
};
/// In the order of trained_groups; within a group: weights, A, B.
std::vector<PartMovement> movement_by_part(const ParameterTable& table,
                                           const std::vector<TensorChange>& changes);

/// How many trained experts moved, and why others did not.
struct ExpertMovement {
  int64_t trained = 0, moved = 0;
  // Experts that did not move:
  std::vector<int64_t> without_tokens;  // got no token; by MoE layer
  int64_t without_gradient = 0;         // may have got only tokens without a gradient
  std::vector<std::string> forgotten;   // got a gradient for certain: one tensor of each expert
  // For each expert with only some moved tensors: the first tensor that did not move.
  std::vector<std::string> in_part;
};
ExpertMovement movement_of_experts(const ParameterTable& table,
                                   const std::vector<TensorChange>& changes,
                                   const Routing& routing);

}  // namespace hearth
