// Copies between the memory of devices and the host, for what ranks send each other.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/place.h"
#include "device/device.h"
#include "plan/trace.h"

namespace hearth {

/// Has a stream of its own at each device. Calls come from one thread at a time; copies are asynchronous
/// until `synchronize`. Owns no memory.
class DeviceStage {
 public:
  /// `devices`: by place; the first `hosts` are the host's. They must outlive the object.
  DeviceStage(std::span<Device* const> devices, int32_t hosts);

  bool is_device(Place place) const { return streams_.contains(place); }
  /// What a block has at a device, to the host. `gradient`: for the timeline.
  void to_host(Place place, void* target, const void* source, size_t bytes, BlockId block,
               bool gradient);
  void to_device(Place place, void* target, const void* source, size_t bytes, BlockId block,
                 bool gradient);
  /// Zeroes memory of a device.
  void clear(Place place, void* target, size_t bytes);
  /// Returns when all copies have ended.
  void synchronize();

  /// The copies since the last call, by steady_link_clock.
  std::vector<BlockCopy> take_copies();

 private:
  struct At {
    Device* device;
    std::unique_ptr<Stream> stream;
  };
  void copy(Place place, void* target, const void* source, size_t bytes, BlockCopy copied);

  std::map<Place, At> streams_;
  std::vector<BlockCopy> copies_;
};

}  // namespace hearth
