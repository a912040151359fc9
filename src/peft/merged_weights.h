// The weights of a model with an adapter merged, row by row.
#pragma once

#include <optional>
#include <vector>

#include "base/pool.h"
#include "checkpoint/weight_source.h"
#include "peft/merge_pair.h"

namespace hearth {

/// Gives what write_merged writes. `adapters` is a table of the base with adapters, whose trained
/// tensors have homes, as in LoadedAdapter. All must outlive this. Numeric error, naming the tensor,
/// if a merged weight is not finite as its stored type.
class MergedWeights final : public WeightSource {
 public:
  MergedWeights(const ParameterTable& adapters, CheckpointWeights& base, const Pool& pool)
      : adapters_(adapters), base_(base), pool_(pool) {}
  void read(TensorId tensor, int64_t row, int64_t rows, float* out) override;

 private:
  const ParameterTable& adapters_;
  CheckpointWeights& base_;
  const Pool& pool_;
  TensorId paired_ = -1;  // the tensor of pair_
  std::optional<MergePair> pair_;
  std::vector<std::byte> stored_, staging_;
};

}  // namespace hearth
