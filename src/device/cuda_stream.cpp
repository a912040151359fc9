#include "device/cuda_stream.h"

#include "device/cuda_state.h"
#include "device/upload_ring.h"

namespace hearth {

static_assert(CudaStream::kUploadBytes == UploadRing::kTable);

size_t CudaStream::memory_bytes(const StreamOptions& options) {
  const bool uploads = options.use == StreamUse::compute;
  return align_up(options.scratch_bytes, UploadRing::kAlignment) +
         (uploads ? UploadRing::kBytes : 0);
}

CudaStream::CudaStream(std::shared_ptr<CudaState> device, const StreamOptions& options)
    : device_(std::move(device)) {
  const bool compute = options.use == StreamUse::compute;
  memory_ = device_->reserve_device("scratch of stream " + options.name,
                                    align_up(options.scratch_bytes, UploadRing::kAlignment));
  scratch_ = Scratch(memory_->data(), memory_->size());
  if (compute) ring_ = std::make_unique<UploadRing>(device_, "tables of stream " + options.name);

  int lowest = 0, highest = 0;
  device_->call("cudaDeviceGetStreamPriorityRange", &CudaCalls::priority_range, &lowest, &highest);
  device_->call("cudaStreamCreateWithPriority", &CudaCalls::stream_create, &handle_,
                compute ? highest : lowest);
  target_.emplace(handle_, *device_);
}

CudaStream::~CudaStream() {
  target_.reset();  // the next stream may get the same handle
  device_->release(&CudaCalls::stream_synchronize, handle_);
  device_->release(&CudaCalls::stream_destroy, handle_);
}

void CudaStream::synchronize() {
  device_->call("cudaStreamSynchronize", &CudaCalls::stream_synchronize, handle_);
}

size_t CudaStream::resident_bytes() const {
  return memory_->size() + (ring_ ? UploadRing::kBytes : 0);
}

void* CudaStream::handle() {
  device_->enter();
  return handle_;
}

const void* CudaStream::upload(std::span<const std::byte> table) {
  HEARTH_CHECK(ring_ != nullptr, "a table for a stream of copies");
  return ring_->upload(table, handle_);
}

CudaStream& cuda_stream(Stream& stream) {
  auto* cuda = dynamic_cast<CudaStream*>(&stream);
  HEARTH_CHECK(cuda != nullptr, "a cuda op on a stream of another device");
  return *cuda;
}

}  // namespace hearth
