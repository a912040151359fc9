// The sum that merging an adapter makes: W + scale * B A.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/pool.h"
#include "model/parameter_table.h"

namespace hearth {

/// The pair of a matrix as f32, whatever the homes are.
struct MergePair {
  std::vector<float> a, b;
  int64_t rank = 0;
  float scale = 0;
};

/// nullopt for a matrix without a pair. Uses `staging` for homes that the host cannot access.
std::optional<MergePair> merge_pair(const ParameterTable& table, TensorId matrix,
                                    std::vector<std::byte>& staging);

/// values [rows, columns] += scale * B[first ...] A; each sum in the order of ranks.
void add_product(const MergePair& pair, int64_t first, int64_t rows, int64_t columns, float* values,
                 const Pool& pool);

}  // namespace hearth
