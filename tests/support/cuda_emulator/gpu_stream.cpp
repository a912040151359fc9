// The streams of emulated kernels: those of CUDA devices over a fake runtime, or any stream of the
// host, on which they run at once.
#include "gpu_kernels/gpu_stream.h"

#include "device/cuda_stream.h"

namespace hearth::HEARTH_GPU {

GpuStream::GpuStream(Stream& stream)
    : stream_(&stream), cuda_(dynamic_cast<CudaStream*>(&stream)) {}

void* GpuStream::handle() { return cuda_ != nullptr ? cuda_->handle() : nullptr; }

const void* GpuStream::upload(std::span<const std::byte> table) {
  if (cuda_ != nullptr) return cuda_->upload(table);
  tables_.emplace_back(table.begin(), table.end());
  return tables_.back().data();
}

}  // namespace hearth::HEARTH_GPU
