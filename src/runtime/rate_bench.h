// The stream and the matrices of one measurement of a device's rates.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "device/device.h"
#include "ops/op_set.h"
#include "runtime/machine_rates.h"

namespace hearth {

/// Owns what it measures with. Matrices lie in the device's main memory and hold small numbers:
/// zeros would be as fast, but not in loops that look at what they add. They are made there, in the
/// stream's order: nothing passes the link to the host, which may be slow.
class RateBench {
 public:
  RateBench(Device& device, const RateOptions& options, ScratchNeed need);

  Stream& stream() { return *stream_; }
  View matrix(DType type, int64_t rows, int64_t cols);
  /// f32, all above zero.
  View positive(int64_t rows, int64_t cols);
  View integers(const std::vector<int32_t>& values);

  /// Seconds of the shorter of two runs, each to its end on the device; the first warms caches.
  double shortest(const std::function<void()>& f);

 private:
  std::byte* reserve(size_t bytes);
  void fill(std::byte* target, std::byte value, size_t bytes);

  Device& device_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::unique_ptr<Arena>> arenas_;
};

}  // namespace hearth
