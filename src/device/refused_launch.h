// A kernel launch that CUDA refused. It breaks its device, as any failing call does.
#pragma once

#include <string>

namespace hearth {

class CudaState;

/// Raises the device error of the launch and marks the device of the stream as broken. `stream` is
/// what CudaStream::handle returned, `code` the cudaError. Thread-safe.
[[noreturn]] void refuse_launch(const void* stream, const std::string& kernel, int code);

/// RAII: tells `refuse_launch` which device a stream belongs to. The state must outlive it.
class LaunchTarget {
 public:
  LaunchTarget(const void* stream, CudaState& device);
  ~LaunchTarget();
  LaunchTarget(const LaunchTarget&) = delete;
  LaunchTarget& operator=(const LaunchTarget&) = delete;

 private:
  const void* const stream_;
};

}  // namespace hearth
