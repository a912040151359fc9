#include "base/place_memory.h"

#include <cstring>

#include "base/error.h"

namespace hearth {

namespace {

class HostMemory final : public PlaceMemory {
 public:
  bool host_reaches(Place place) const override {
    HEARTH_CHECK(place == kHostPlace, "place memory: a process without devices");
    return true;
  }
  void read(Place place, const std::byte* source, std::span<std::byte> target) override {
    if (host_reaches(place) && !target.empty()) {
      std::memcpy(target.data(), source, target.size());
    }
  }
  void write(Place place, std::byte* target, std::span<const std::byte> source) override {
    if (host_reaches(place) && !source.empty()) {
      std::memcpy(target, source.data(), source.size());
    }
  }
};

}  // namespace

PlaceMemory& host_memory() {
  static HostMemory memory;
  return memory;
}

std::span<const std::byte> host_bytes(PlaceMemory& memory, Place place,
                                      std::span<const std::byte> bytes,
                                      std::vector<std::byte>& staging) {
  if (memory.host_reaches(place)) return bytes;
  staging.resize(bytes.size());
  memory.read(place, bytes.data(), staging);
  return staging;
}

}  // namespace hearth
