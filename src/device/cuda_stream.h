// The stream of a CUDA device: a queue on the device, device scratch, and uploads of small tables.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "base/stream.h"
#include "device/device.h"
#include "device/refused_launch.h"

namespace hearth {

class CudaState;
class UploadRing;

/// Ops enqueue work and return; the device runs it in the order of the calls. Any call may raise
/// the device's error (exit 6).
class CudaStream final : public Stream {
 public:
  CudaStream(std::shared_ptr<CudaState> device, const StreamOptions& options);
  ~CudaStream() override;
  /// Bytes of device memory that a stream with these options takes.
  static size_t memory_bytes(const StreamOptions& options);

  /// Blocks until everything enqueued so far has run.
  void synchronize() override;
  /// Device memory, only for kernels. The next op on this stream may take the same memory, because
  /// the kernels run in order.
  Scratch& scratch() override { return scratch_; }
  size_t resident_bytes() const override;

  /// The cudaStream_t. Makes its device current for the calling thread, as launches require. A
  /// refused launch is reported by `refuse_launch`.
  void* handle();
  /// Copies `table`, at most kUploadBytes, to device memory (256-byte aligned) for the work
  /// enqueued after this call. Reads `table` before it returns. The copy stays valid until
  /// kUploadBytes of further tables, each rounded up to 256, have been uploaded. So an op enqueues
  /// its kernels before it returns, and forgets the address. Only on compute streams.
  const void* upload(std::span<const std::byte> table);
  static constexpr size_t kUploadBytes = size_t{256} << 10;

  const CudaState& device() const { return *device_; }

 private:
  std::shared_ptr<CudaState> device_;
  std::unique_ptr<Arena> memory_;
  Scratch scratch_;
  void* handle_ = nullptr;
  std::unique_ptr<UploadRing> ring_;  // only on compute streams
  std::optional<LaunchTarget> target_;
};

/// Downcasts the stream; a bug if it belongs to another kind of device.
CudaStream& cuda_stream(Stream& stream);

}  // namespace hearth
