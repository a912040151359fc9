// Memory that the host cannot access: its addresses fault, and only PlaceMemory moves its bytes.
#pragma once

#include <sys/mman.h>

#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include "base/error.h"
#include "base/place_memory.h"

namespace hearth::test {

/// Place 1 is such memory. The host's own memory works as usual.
class GuardedMemory final : public PlaceMemory {
 public:
  explicit GuardedMemory(size_t bytes = size_t{64} << 20) : bytes_(bytes) {
    void* at = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    addresses_ = static_cast<std::byte*>(at);
  }
  ~GuardedMemory() override { munmap(addresses_, bytes_.size()); }

  /// Reserves zeroed bytes, until this is destroyed.
  std::byte* reserve(size_t bytes) {
    std::byte* at = addresses_ + used_;
    used_ += (bytes + 4095) / 4096 * 4096;
    HEARTH_CHECK(used_ <= bytes_.size(), "guarded memory: full");
    return at;
  }

  bool host_reaches(Place place) const override { return place == kHostPlace; }
  void read(Place place, const std::byte* source, std::span<std::byte> target) override {
    const std::lock_guard lock(mutex_);
    read_bytes += target.size();
    const std::byte* from = place == kHostPlace ? source : lying_at(source, target.size());
    if (!target.empty()) std::memcpy(target.data(), from, target.size());
  }
  void write(Place place, std::byte* target, std::span<const std::byte> source) override {
    const std::lock_guard lock(mutex_);
    written_bytes += source.size();
    std::byte* to = place == kHostPlace ? target : lying_at(target, source.size());
    if (!source.empty()) std::memcpy(to, source.data(), source.size());
  }

  size_t read_bytes = 0, written_bytes = 0;

 private:
  std::byte* lying_at(const std::byte* address, size_t bytes) {
    HEARTH_CHECK(address >= addresses_ && address + bytes <= addresses_ + used_,
                 "guarded memory: bytes of another place");
    return bytes_.data() + (address - addresses_);
  }

  std::mutex mutex_;
  std::vector<std::byte> bytes_;
  std::byte* addresses_ = nullptr;
  size_t used_ = 0;
};

}  // namespace hearth::test
