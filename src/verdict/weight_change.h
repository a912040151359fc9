// What training did to the weights: frozen ones keep their content, and how far trained ones moved.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/pool.h"
#include "model/parameter_table.h"
#include "verdict/gradient_record.h"

namespace hearth {

/// The content of all frozen tensors in memory.
struct FrozenContent {
  int64_t tensors = 0, parameters = 0;
  std::vector<Digest> digests;  // of the tensors, in the order of the table
  Digest root;                  // of names and digests
};
FrozenContent frozen_content(const ParameterTable& table, const Pool& pool);
/// The names of frozen tensors whose content differs.
std::vector<std::string> changed_tensors(const ParameterTable& table, const FrozenContent& before,
                                         const FrozenContent& after);

/// How far a trained tensor is from its start.
struct TensorChange {
  TensorId id = 0;
  double start_square = 0;   // of the norm it began with
  double update_square = 0;  // of the norm of the difference
  /// Its weights differ from those that it began with, and it had a gradient in some step of the
  /// run: a tensor that weight decay alone changed did not move.
  bool moved = false;
};
/// The changes of all trained tensors, in the order of the table. The gradient buffers hold the
/// weights that training began with (Session::read_start). Sums are f64 and have a fixed order.
std::vector<TensorChange> tensor_changes(const ParameterTable& table, const GradientRecord& record,
                                         const Pool& pool);

}  // namespace hearth
