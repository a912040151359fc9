// The changes of single tensors put together: by group as users name them, and by expert.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "verdict/routing.h"
#include "verdict/weight_change.h"

namespace hearth {

/// The trained tensors of a group that are alike: the weights of the model, or A or B of the pairs.
struct PartMovement {
  std::string group;
  Factor factor = Factor::none;
  int64_t tensors = 0, moved = 0, parameters = 0;
  double start_norm = 0, update_norm = 0;
  std::string first_unmoved = {};

  /// "experts", "A of experts".
  std::string name() const;
};
/// Groups in the order of trained_groups; weights, A, B.
std::vector<PartMovement> movement_by_part(const ParameterTable& table,
                                           const std::vector<TensorChange>& changes);

/// What became of the trained experts.
struct ExpertMovement {
  int64_t trained = 0, moved = 0;
  // Those that did not move:
  std::vector<int64_t> without_tokens;  // no token was routed to them; by layer of the routing
  int64_t without_gradient = 0;         // their tokens may all have had no target behind them
  std::vector<std::string> forgotten;   // got a token with a gradient for certain: a tensor of each
  std::vector<std::string> in_part;     // tensors that did not move though others of the expert did
};
ExpertMovement movement_of_experts(const ParameterTable& table,
                                   const std::vector<TensorChange>& changes,
                                   const Routing& routing);

}  // namespace hearth
