// Changes of the weights: whether frozen tensors are unchanged, and how far trained tensors moved.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/pool.h"
#include "model/parameter_table.h"
#include "verdict/gradient_record.h"

namespace hearth {

/// Digests of all frozen tensors in memory.
struct FrozenContent {
  int64_t tensors = 0, parameters = 0;
  std::vector<Digest> digests;  // of the tensors, in the order of the table
  Digest root;                  // of names and digests
};
FrozenContent frozen_content(const ParameterTable& table, const Pool& pool);
/// The names of frozen tensors whose content differs.
std::vector<std::string> changed_tensors(const ParameterTable& table, const FrozenContent& before,
                                         const FrozenContent& after);

/// How far a trained tensor moved from its initial value.
struct TensorChange {
  TensorId id = 0;
  double start_square = 0;   // squared norm of the initial value
  double update_square = 0;  // squared norm of the difference
  /// Its weights changed, and it had a gradient in some step. A tensor that only weight decay
  /// changed did not move.
  bool moved = false;
};
/// The changes of all trained tensors, in the order of the table. The gradient buffers must hold
/// the initial weights (Session::read_start). Sums are f64 in a fixed order.
std::vector<TensorChange> tensor_changes(const ParameterTable& table, const GradientRecord& record,
                                         const Pool& pool);

}  // namespace hearth
