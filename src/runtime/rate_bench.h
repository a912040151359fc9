// The stream and the matrices that one measurement of a device's speed uses.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "device/device.h"
#include "ops/op_set.h"
#include "runtime/machine_rates.h"

namespace hearth {

/// Owns the stream and the matrices. Matrices are in the device's main memory. They hold small
/// numbers, not zeros, because some loops skip zeros. The device fills them itself, so nothing
/// passes the link to the host, which may be slow.
class RateBench {
 public:
  RateBench(Device& device, const RateOptions& options, ScratchNeed need);
  /// Unbinds the calling thread, which has computed as a worker.
  ~RateBench();
  RateBench(const RateBench&) = delete;
  RateBench& operator=(const RateBench&) = delete;

  Stream& stream() { return *stream_; }
  View matrix(DType type, int64_t rows, int64_t cols);
  /// An f32 matrix of numbers above zero.
  View positive(int64_t rows, int64_t cols);
  View integers(const std::vector<int32_t>& values);

  /// Runs f, which enqueues work on the stream, several times. Returns its shortest time in seconds.
  /// The first run only warms caches if the device has a clock of its own. Then the device times the
  /// work between two events, while it has work in front of them: neither launches nor waits of the
  /// host count.
  double shortest(const std::function<void()>& f);

 private:
  double by_host_clock(const std::function<void()>& f);
  double by_device_clock(const std::function<void()>& f);
  std::byte* reserve(size_t bytes);
  void fill(std::byte* target, std::byte value, size_t bytes);

  Device& device_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::unique_ptr<Arena>> arenas_;
};

}  // namespace hearth
