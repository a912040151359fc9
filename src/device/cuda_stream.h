// The stream of a CUDA device: a queue on the device, device scratch, and small tables sent along.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/stream.h"
#include "device/device.h"

namespace hearth {

class CudaState;
class UploadRing;

/// Ops enqueue work and return; work runs in the order of the calls. Made by a CUDA device. Every
/// call may raise the device's error (exit 6).
class CudaStream final : public Stream {
 public:
  CudaStream(std::shared_ptr<CudaState> device, const StreamOptions& options);
  ~CudaStream() override;
  /// Bytes of device memory that a stream of these options takes.
  static size_t memory_bytes(const StreamOptions& options);

  /// Blocks until everything enqueued so far has run.
  void synchronize() override;
  /// Device memory, for kernels only. What an op takes, the next op on this stream may take too: they
  /// run in order.
  Scratch& scratch() override { return scratch_; }
  size_t resident_bytes() const override;

  /// The cudaStream_t. Makes its device the current one of the calling thread, as launches need.
  void* handle();
  /// Device memory, aligned to 256 bytes, that holds a copy of `table` for the work enqueued after
  /// this call. `table` is read before the call returns. The copy stays until further tables of
  /// `kUploadBytes` in all (each rounded up to 256) have been uploaded, so an op enqueues its kernels
  /// before it returns and forgets the address. At most kUploadBytes, on compute streams only.
  const void* upload(std::span<const std::byte> table);
  static constexpr size_t kUploadBytes = size_t{256} << 10;

  /// After a kernel launch: raises if it was refused. `kernel`: its name for the error line.
  void check_launch(const char* kernel);
  const CudaState& device() const { return *device_; }

 private:
  std::shared_ptr<CudaState> device_;
  std::unique_ptr<Arena> memory_;
  Scratch scratch_;
  void* handle_ = nullptr;
  std::unique_ptr<UploadRing> ring_;  // compute streams alone
};

/// The stream as a CUDA stream; a bug if it belongs to another kind of device.
CudaStream& cuda_stream(Stream& stream);

}  // namespace hearth
