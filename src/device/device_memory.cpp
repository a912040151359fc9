#include "device/device_memory.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/error.h"

namespace hearth {

namespace {

std::unique_ptr<Stream> copy_stream(Device& device, StreamUse use) {
  StreamOptions options;
  options.name = use == StreamUse::copy_in ? "parameters in" : "parameters out";
  options.use = use;
  return device.create_stream(options);
}

}  // namespace

class DeviceMemory::Link {
 public:
  explicit Link(Device& device)
      : device_(device),
        pinned_(device.reserve("staging of parameters", SpaceKind::pinned, kPinnedBytes)),
        in_(copy_stream(device, StreamUse::copy_in)),
        out_(copy_stream(device, StreamUse::copy_out)) {
    for (auto& event : passed_) event = device.create_event();
  }

  void read(const std::byte* source, std::span<std::byte> target) {
    const std::lock_guard lock(mutex_);
    const size_t pieces = pieces_of(target.size());
    const auto begin = [&](size_t i) {
      const size_t at = i * kPieceBytes;
      pass(*out_, i, half(i), source + at, std::min(kPieceBytes, target.size() - at));
    };
    if (pieces > 0) begin(0);
    for (size_t i = 0; i < pieces; ++i) {
      if (i + 1 < pieces) begin(i + 1);
      await(i);
      const auto to = target.subspan(i * kPieceBytes);
      std::memcpy(to.data(), half(i), std::min(kPieceBytes, to.size()));
    }
  }

  void write(std::byte* target, std::span<const std::byte> source) {
    const std::lock_guard lock(mutex_);
    const size_t pieces = pieces_of(source.size());
    for (size_t i = 0; i < pieces; ++i) {
      if (i >= 2) await(i);  // the piece before the last had this half
      const size_t at = i * kPieceBytes, bytes = std::min(kPieceBytes, source.size() - at);
      std::memcpy(half(i), source.data() + at, bytes);
      pass(*in_, i, target + at, half(i), bytes);
    }
    for (size_t i = pieces - std::min<size_t>(pieces, 2); i < pieces; ++i) await(i);
  }

 private:
  static size_t pieces_of(size_t bytes) { return (bytes + kPieceBytes - 1) / kPieceBytes; }
  std::byte* half(size_t piece) const { return pinned_->data() + piece % 2 * kPieceBytes; }

  void pass(Stream& stream, size_t piece, void* target, const void* source, size_t bytes) {
    passed_[piece % 2]->reset();
    device_.copy(stream, target, source, bytes);
    device_.record(*passed_[piece % 2], stream);
  }
  void await(size_t piece) { passed_[piece % 2]->synchronize(); }

  Device& device_;
  std::mutex mutex_;
  std::unique_ptr<Arena> pinned_;  // two halves
  std::unique_ptr<Stream> in_, out_;
  std::unique_ptr<Event> passed_[2];  // the copy of the piece in each half
};

DeviceMemory::DeviceMemory(std::span<Device* const> devices) {
  links_.emplace_back();  // the host
  for (Device* device : devices) {
    links_.push_back(device->host_reaches() ? nullptr : std::make_unique<Link>(*device));
  }
}

DeviceMemory::~DeviceMemory() = default;

DeviceMemory::Link* DeviceMemory::link_to(Place place) const {
  HEARTH_CHECK(place >= kHostPlace && place < std::ssize(links_), "place memory: no such place");
  return links_[static_cast<size_t>(place)].get();
}

bool DeviceMemory::host_reaches(Place place) const { return link_to(place) == nullptr; }

void DeviceMemory::read(Place place, const std::byte* source, std::span<std::byte> target) {
  if (Link* link = link_to(place)) return link->read(source, target);
  if (!target.empty()) std::memcpy(target.data(), source, target.size());
}

void DeviceMemory::write(Place place, std::byte* target, std::span<const std::byte> source) {
  if (Link* link = link_to(place)) return link->write(target, source);
  if (!source.empty()) std::memcpy(target, source.data(), source.size());
}

}  // namespace hearth
