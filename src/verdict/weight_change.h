// What training did to the weights: that what is frozen kept its content, and how far the rest moved.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/pool.h"
#include "model/parameter_table.h"

namespace hearth {

/// The content of everything that is frozen, as it lies in memory.
struct FrozenContent {
  int64_t tensors = 0, parameters = 0;
  std::vector<Digest> digests;  // of the tensors, in the order of the table
  Digest root;                  // of names and digests
};
FrozenContent frozen_content(const ParameterTable& table, const Pool& pool);
/// Names of frozen tensors that have another content.
std::vector<std::string> changed_tensors(const ParameterTable& table, const FrozenContent& before,
                                         const FrozenContent& after);

/// How far a trained tensor is from where training began.
struct TensorChange {
  TensorId id = 0;
  double start_square = 0;   // of the norm it began with
  double update_square = 0;  // of the norm of the difference
  /// It has other values, and had a gradient: weight decay alone moves nothing in this sense.
  bool moved = false;
};
/// Of all trained tensors in the order of the table. Their gradients hold the values that training
/// began with (Session::read_start). Sums of fixed order, in f64.
std::vector<TensorChange> tensor_changes(const ParameterTable& table, const Pool& pool);

}  // namespace hearth
