// Reads the weights of a model row by row, wherever they come from: for files that are written
// without holding the model in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace hearth {

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  /// Rows [row, row + rows) of a tensor of the model as f32, [rows, cols]. Every value is one of the
  /// tensor's stored type. Not thread-safe.
  virtual void read(TensorId tensor, int64_t row, int64_t rows, float* out) = 0;
};

/// The weights of a checkpoint, which must outlive this. Input error, naming tensor and element, for
/// a weight that is not finite.
class CheckpointWeights final : public WeightSource {
 public:
  explicit CheckpointWeights(const Checkpoint& base);
  void read(TensorId tensor, int64_t row, int64_t rows, float* out) override;

  const Checkpoint& base() const { return base_; }
  /// Of the checkpoint, without copies.
  const ParameterTable& table() const { return table_; }

 private:
  struct Home {
    const PublishedTensor* published = nullptr;
    int64_t at = 0;  // its first element there
  };

  const Checkpoint& base_;
  ParameterTable table_;
  std::vector<Home> homes_;  // by tensor
  std::vector<std::byte> stored_;
};

}  // namespace hearth
