// A small problem on a device: what ops compute from random inputs.
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
  /// The elements of the outputs, in the order in which these were made.
  using Results = std::vector<std::vector<float>>;

  Trial(Device& device, ScratchNeed need);

  /// Uniform in [-scale, scale), the same each time that a trial is made so.
  View random(DType type, int64_t rows, int64_t cols, double scale = 1);
  View integers(const std::vector<int32_t>& values);
  /// f32; zeros when a run begins.
  View output(int64_t rows, int64_t cols);

  Results run(const std::function<void(Stream&)>& problem);

 private:
  SpaceKind space(SpaceKind wanted) const;
  std::byte* reserve(size_t bytes);
  std::byte* write(const void* source, size_t bytes);
  void read(void* target, const void* source, size_t bytes);

  Device& device_;
  std::unique_ptr<Arena> staging_;  // what the host reaches
  std::vector<std::unique_ptr<Arena>> arenas_;
  std::unique_ptr<Stream> stream_;
  std::vector<View> outputs_;
  uint32_t next_ = 0;
};

}  // namespace hearth
