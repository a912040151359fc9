// The memory of the places of a run: the host, and its devices.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/place_memory.h"
#include "device/device.h"

namespace hearth {

/// Copies pass through pinned memory in pieces, on separate copy streams: one piece is on the link
/// while the host copies the other. Calls for one device take turns. Devices whose memory the host
/// can access need no pinned memory.
class DeviceMemory final : public PlaceMemory {
 public:
  /// `devices` are the places from 1 on. They must outlive this object.
  explicit DeviceMemory(std::span<Device* const> devices);
  ~DeviceMemory() override;

  bool host_reaches(Place place) const override;
  void read(Place place, const std::byte* source, std::span<std::byte> target) override;
  void write(Place place, std::byte* target, std::span<const std::byte> source) override;

  static constexpr size_t kPieceBytes = size_t{2} << 20;
  /// Pinned host memory per device whose memory the host cannot access.
  static constexpr size_t kPinnedBytes = 2 * kPieceBytes;

 private:
  class Link;  // to a device whose memory the host cannot access
  /// Null if the host can access the place; a bug if there is no such place.
  Link* link_to(Place place) const;
  std::vector<std::unique_ptr<Link>> links_;  // by place; null if the host can access it
};

}  // namespace hearth
