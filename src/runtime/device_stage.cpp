#include "runtime/device_stage.h"

#include <utility>

#include "base/error.h"
#include "device/link.h"

namespace hearth {

DeviceStage::DeviceStage(std::span<Device* const> devices, int32_t hosts) {
  for (Place place = hosts; place < std::ssize(devices); ++place) {
    Device* const device = devices[static_cast<size_t>(place)];
    StreamOptions options;
    options.name = "place " + std::to_string(place) + " ranks";
    options.use = StreamUse::copy_out;
    streams_[place] = {device, device->create_stream(options)};
  }
}

void DeviceStage::copy(Place place, void* target, const void* source, size_t bytes,
                       BlockCopy copied) {
  const auto at = streams_.find(place);
  HEARTH_CHECK(at != streams_.end(), "device stage: no device");
  LinkClock& clock = steady_link_clock();
  copied.begin = clock.now();
  at->second.device->copy(*at->second.stream, target, source, bytes);
  copied.end = clock.now();
  copied.bytes = bytes;
  copies_.push_back(copied);
}

void DeviceStage::to_host(Place place, void* target, const void* source, size_t bytes,
                          BlockId block, bool gradient) {
  copy(place, target, source, bytes, {block, gradient, place, kHostPlace});
}

void DeviceStage::to_device(Place place, void* target, const void* source, size_t bytes,
                            BlockId block, bool gradient) {
  copy(place, target, source, bytes, {block, gradient, kHostPlace, place});
}

void DeviceStage::clear(Place place, void* target, size_t bytes) {
  const At& at = streams_.at(place);
  at.device->fill(*at.stream, target, std::byte{0}, bytes);
}

void DeviceStage::synchronize() {
  for (auto& [place, at] : streams_) at.stream->synchronize();
}

std::vector<BlockCopy> DeviceStage::take_copies() { return std::exchange(copies_, {}); }

}  // namespace hearth
