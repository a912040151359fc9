// The memory of the places of a run: the host, and its devices.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/place_memory.h"
#include "device/device.h"

namespace hearth {

/// Bytes pass pinned memory in pieces, on streams of their own beside those that compute: one piece
/// is on the link while the host copies the other. Calls for one device take turns. A device whose
/// memory the host reaches costs nothing; its bytes are copied at once.
class DeviceMemory final : public PlaceMemory {
 public:
  /// devices: of the places from 1 on, which outlive this.
  explicit DeviceMemory(std::span<Device* const> devices);
  ~DeviceMemory() override;

  bool host_reaches(Place place) const override;
  void read(Place place, const std::byte* source, std::span<std::byte> target) override;
  void write(Place place, std::byte* target, std::span<const std::byte> source) override;

  static constexpr size_t kPieceBytes = size_t{2} << 20;
  /// Pinned memory of the host that it takes for a device which the host does not reach.
  static constexpr size_t kPinnedBytes = 2 * kPieceBytes;

 private:
  class Link;  // to a device that the host does not reach
  /// Null where the host reaches the place; a bug if there is no such place.
  Link* link_to(Place place) const;
  std::vector<std::unique_ptr<Link>> links_;  // by place; null where the host reaches it
};

}  // namespace hearth
