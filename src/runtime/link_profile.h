// How fast the links between devices and the host are: alone, and while all carry copies.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "device/device.h"
#include "plan/cost_table.h"

namespace hearth {

/// Both links of each device: "host->NAME", "NAME->host". Latency is the time of a copy of a few
/// bytes; a device that states its latency and rate is believed, apart from rates without a limit.
/// `together`: the rate of each while all of them are busy, at most the rate alone. It is taken
/// from whole copies, at least four of each link, in about `seconds`; slow links may take four
/// times as long. Takes at most `max_bytes` of host memory and as much of each device. Usage error
/// if that is below 1 MiB for each link.
std::vector<CostLink> measure_link_costs(std::span<Device* const> devices, double seconds,
                                         uint64_t max_bytes);

/// What a link has carried when its last copy ended.
struct Carried {
  uint64_t bytes = 0;
  int64_t copies = 0;
  double at_s = 0;  // of a steady clock
};

/// The rate of a link beside others: of the copies that ended after the last one of `before`, up to
/// the last one of `after`. Both times are ends of copies, so no part of a copy counts or is
/// missing. As the rate alone, it leaves out latency. `alone`: the link by itself, which it does
/// not pass. Without a copy an even share of that.
double rate_together(const Carried& before, const Carried& after, const CostLink& alone,
                     size_t links);

/// RAII: copies in both directions over the links of all devices, without a pause. Measurements of
/// tasks run beside it, because copies take memory bandwidth from them.
class BackgroundCopies {
 public:
  /// `pieces`: bytes of a copy over each link; empty: 4 MiB. At most what the memory allows.
  BackgroundCopies(std::span<Device* const> devices, uint64_t max_bytes,
                   std::span<const size_t> pieces = {});
  ~BackgroundCopies();
  BackgroundCopies(const BackgroundCopies&) = delete;
  BackgroundCopies& operator=(const BackgroundCopies&) = delete;

  /// What each link has carried: to the first device, from it, to the second...
  std::vector<Carried> carried() const;

 private:
  struct Lane;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace hearth
