// The stream that an op enqueues kernels on.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "base/stream.h"

namespace hearth {
class CudaStream;
}

namespace hearth::HEARTH_GPU {

/// Must live until the op has enqueued its kernels. Copies share the stream, but each object owns
/// its tables.
class GpuStream {
 public:
  /// It is a bug if kernels cannot run on this stream.
  explicit GpuStream(Stream& stream);

  /// For `launch`. Makes the stream's device current for the calling thread.
  void* handle();
  /// Device memory.
  Scratch& scratch() { return stream_->scratch(); }
  /// Copies `table` to device memory, for the kernels that this op enqueues (CudaStream::upload).
  const void* upload(std::span<const std::byte> table);
  /// The same for an array.
  template <class T>
  const T* upload(const std::vector<T>& table) {
    return static_cast<const T*>(upload(std::as_bytes(std::span(table))));
  }

 private:
  Stream* stream_;
  CudaStream* cuda_;                           // null: kernels are emulated and run in the call
  std::deque<std::vector<std::byte>> tables_;  // uploads for emulated kernels
};

inline GpuStream gpu_stream(Stream& stream) { return GpuStream(stream); }

}  // namespace hearth::HEARTH_GPU
