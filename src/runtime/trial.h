// Runs ops on a small problem with random inputs, on one device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "device/device.h"
#include "ops/op_set.h"

namespace hearth {

/// Owns the stream and the tensors. Calls block.
class Trial {
 public:
  /// The elements of each output, in the order of the calls of `output`.
  using Results = std::vector<std::vector<float>>;

  Trial(Device& device, ScratchNeed need);

  /// Uniform in [-scale, scale). The same calls give the same numbers in every trial.
  View random(DType type, int64_t rows, int64_t cols, double scale = 1);
  View integers(const std::vector<int32_t>& values);
  /// An f32 output. Each run begins with zeros in it.
  View output(int64_t rows, int64_t cols);

  Results run(const std::function<void(Stream&)>& problem);

 private:
  SpaceKind space(SpaceKind wanted) const;
  std::byte* reserve(size_t bytes);
  std::byte* write(const void* source, size_t bytes);
  void read(void* target, const void* source, size_t bytes);

  Device& device_;
  std::unique_ptr<Arena> staging_;  // memory that the host can access
  std::vector<std::unique_ptr<Arena>> arenas_;
  std::unique_ptr<Stream> stream_;
  std::vector<View> outputs_;
  uint32_t next_ = 0;
};

}  // namespace hearth
