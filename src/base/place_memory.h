// Copies bytes between the memory of a place and the host.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/place.h"

namespace hearth {

/// Host access to the memory of places. Memory that the host can access directly needs no copy.
/// Thread-safe. Calls block until the copy is complete. Tasks that touch the bytes must have ended.
/// Raises the errors of the place's device.
class PlaceMemory {
 public:
  virtual ~PlaceMemory() = default;

  /// Whether the host can access the memory of the place directly; true for the host itself.
  virtual bool host_reaches(Place place) const = 0;
  /// Copies from the memory of the place.
  virtual void read(Place place, const std::byte* source, std::span<std::byte> target) = 0;
  /// Copies to the memory of the place.
  virtual void write(Place place, std::byte* target, std::span<const std::byte> source) = 0;
};

/// For a process whose only place is the host.
PlaceMemory& host_memory();

/// Bytes of a place, readable by the host: in place if the host can access them, else a copy in
/// `staging`, which is overwritten.
std::span<const std::byte> host_bytes(PlaceMemory& memory, Place place,
                                      std::span<const std::byte> bytes,
                                      std::vector<std::byte>& staging);

}  // namespace hearth
