// The links between the virtual devices of a run and the host.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <span>

#include "device/link.h"
#include "device/link_rate.h"
#include "device/memory_map.h"

namespace hearth {

/// Both directions between a device and the host.
struct DeviceLinks {
  LinkRates rates;                    // of the device alone, without its root complex
  std::shared_ptr<RootComplex> root;  // null: none
};

/// What a copy passes. Every byte occupies all of the links at once, so the slowest one sets the
/// pace.
struct LinkPath {
  std::array<Link*, 4> links = {};
  size_t count = 0;
  double latency = 0;  // seconds; of both devices if the copy joins two

  void add(Link& link) { links[count++] = &link; }
  /// Of the slowest link; 0: none has a limit.
  double bandwidth() const;
  /// When `bytes` bytes that are ready at `now` will have passed all links.
  double book(double now, size_t bytes) const;
};

/// Knows the memory and the links of all virtual devices of a run. Devices cannot reach each other:
/// a copy between two of them goes through the host, over the link out of one device and the link
/// into the other, and over the same directions of their root complexes. Thread-safe.
class Fabric {
 public:
  /// Adds a device, and returns its number.
  int add(const DeviceLinks& links);
  /// Which device owns a range of memory. The map lives as long as the fabric.
  MemoryMap& memory() { return memory_; }
  /// From one device to another; -1 is the host. Empty within a device or the host.
  LinkPath path(int from, int to);

 private:
  struct Ends {
    explicit Ends(const DeviceLinks& device)
        : in(device.rates.in.bytes_per_s), out(device.rates.out.bytes_per_s), links(device) {}
    Link in, out;
    DeviceLinks links;
  };
  Ends& ends_of(int device);

  MemoryMap memory_;
  std::mutex mutex_;
  std::deque<Ends> ends_;  // by device
};

}  // namespace hearth
