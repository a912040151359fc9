// Bytes on their way between the memory of a place and the host.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/place.h"

namespace hearth {

/// Whoever on the host reads or writes bytes of a place goes through this, unless the host reaches
/// them: then they are used where they lie. Thread-safe. Calls block until the bytes are there;
/// tasks of the schedule that touch them must have ended. Errors are those of the place's device.
class PlaceMemory {
 public:
  virtual ~PlaceMemory() = default;

  /// Whether the host may read and write the bytes of the place; of the host it may.
  virtual bool host_reaches(Place place) const = 0;
  /// Copies from memory of the place.
  virtual void read(Place place, const std::byte* source, std::span<std::byte> target) = 0;
  /// Copies to memory of the place.
  virtual void write(Place place, std::byte* target, std::span<const std::byte> source) = 0;
};

/// Memory of a process that has no place but the host.
PlaceMemory& host_memory();

/// Bytes of a place for the host to read: where they lie if it reaches them, else brought to
/// `staging`, whose content they replace.
std::span<const std::byte> host_bytes(PlaceMemory& memory, Place place,
                                      std::span<const std::byte> bytes,
                                      std::vector<std::byte>& staging);

}  // namespace hearth
