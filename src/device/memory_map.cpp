#include "device/memory_map.h"

#include <iterator>

#include "base/error.h"

namespace hearth {

void MemoryMap::add(const void* address, size_t bytes, int device) {
  const std::lock_guard lock(mutex_);
  pieces_[reinterpret_cast<uintptr_t>(address)] = {bytes, device};
}

void MemoryMap::remove(const void* address) {
  const std::lock_guard lock(mutex_);
  pieces_.erase(reinterpret_cast<uintptr_t>(address));
}

int MemoryMap::owner(const void* address, size_t bytes) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const std::lock_guard lock(mutex_);
  const auto next = pieces_.upper_bound(at);
  if (next == pieces_.begin()) return -1;
  const auto& [begin, piece] = *std::prev(next);
  if (at - begin >= piece.bytes) return -1;
  HEARTH_CHECK(bytes <= piece.bytes - (at - begin), "a range of device memory leaves its arena");
  return piece.device;
}

}  // namespace hearth
