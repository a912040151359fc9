// How fast the links between devices and the host are: alone, and while all carry copies.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "device/device.h"
#include "plan/cost_table.h"

namespace hearth {

/// Both links of each device: "host->NAME", "NAME->host". Latency is the time of a copy of a few
/// bytes; a device that states its latency and rate is believed, apart from rates without a limit.
/// `together`: the rate of each while all of them are busy, at most the rate alone. Takes about
/// `seconds`, and at most `max_bytes` of host memory and as much of each device. Usage error if
/// that is below 1 MiB for each link.
std::vector<CostLink> measure_link_costs(std::span<Device* const> devices, double seconds,
                                         uint64_t max_bytes);

/// RAII: copies in both directions over the links of all devices, without a pause. Measurements of
/// tasks run beside it, because copies take memory bandwidth from them.
class BackgroundCopies {
 public:
  BackgroundCopies(std::span<Device* const> devices, uint64_t max_bytes);
  ~BackgroundCopies();
  BackgroundCopies(const BackgroundCopies&) = delete;
  BackgroundCopies& operator=(const BackgroundCopies&) = delete;

  /// Bytes that each link has carried: to the first device, from it, to the second...
  std::vector<uint64_t> carried() const;

 private:
  struct Lane;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace hearth
