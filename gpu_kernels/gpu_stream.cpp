#include "gpu_kernels/gpu_stream.h"

#include "device/cuda_stream.h"

namespace hearth::HEARTH_GPU {

GpuStream::GpuStream(Stream& stream) : stream_(&stream), cuda_(&cuda_stream(stream)) {}

void* GpuStream::handle() { return cuda_->handle(); }

const void* GpuStream::upload(std::span<const std::byte> table) { return cuda_->upload(table); }

}  // namespace hearth::HEARTH_GPU
