#include "device/upload_ring.h"

#include <cstring>
#include <utility>

namespace hearth {
namespace {

void* address_of(const Arena& arena, size_t at) { return arena.data() + at; }

}  // namespace

UploadRing::UploadRing(std::shared_ptr<CudaState> device, const std::string& name)
    : device_(std::move(device)),
      pinned_(device_->reserve_pinned(name, kBytes)),
      twin_(device_->reserve_device(name, kBytes)) {}

void UploadRing::leave(size_t segment, void* stream) {
  auto& event = copied_[segment];
  if (!event) event = std::make_unique<CudaEvent>(device_, false);
  event->reset();
  event->record(stream);
}

void UploadRing::enter(size_t segment) {
  if (copied_[segment]) copied_[segment]->synchronize();
  segment_ = segment;
}

const void* UploadRing::upload(std::span<const std::byte> table, void* stream) {
  const size_t bytes = align_up(table.size(), kAlignment);
  HEARTH_CHECK(bytes <= kTable, "a table too large to send along");
  if (bytes > kBytes - at_) {
    for (size_t left = segment_; left < kSegments; ++left) leave(left, stream);
    at_ = 0;
    enter(0);
  }
  const size_t first = segment_;
  constexpr size_t segment_bytes = kBytes / kSegments;
  while (at_ + bytes > (segment_ + 1) * segment_bytes) enter(segment_ + 1);

  if (!table.empty()) {
    std::memcpy(address_of(*pinned_, at_), table.data(), table.size());
    device_->call("cudaMemcpyAsync", &CudaCalls::copy, address_of(*twin_, at_),
                  static_cast<const void*>(address_of(*pinned_, at_)), table.size(), stream);
  }
  for (size_t left = first; left < segment_; ++left) leave(left, stream);
  return address_of(*twin_, std::exchange(at_, at_ + bytes));
}

}  // namespace hearth
