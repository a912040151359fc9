// The stream of an op, as kernels need it.
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

/// Lives as long as the op enqueues. Copies refer to the same stream, but tables are the object's.
class GpuStream {
 public:
  /// A bug if kernels cannot run on this stream.
  explicit GpuStream(Stream& stream);

  /// For `launch`. Makes the stream's device the calling thread's.
  void* handle();
  /// Device memory.
  Scratch& scratch() { return stream_->scratch(); }
  /// Device memory that holds a copy of `table` for the kernels that this op enqueues
  /// (CudaStream::upload).
  const void* upload(std::span<const std::byte> table);
  /// The same for an array.
  template <class T>
  const T* upload(const std::vector<T>& table) {
    return static_cast<const T*>(upload(std::as_bytes(std::span(table))));
  }

 private:
  Stream* stream_;
  CudaStream* cuda_;                           // null: emulated kernels, which run in the call
  std::deque<std::vector<std::byte>> tables_;  // of those
};

inline GpuStream gpu_stream(Stream& stream) { return GpuStream(stream); }

}  // namespace hearth::HEARTH_GPU
