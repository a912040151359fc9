// Cross mapping: which device holds which pipeline stage. Neighbouring stages load and send at the
// same time, so two of them below one root complex share its bandwidth.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hearth {

/// A device as the mapping sees it.
struct StageDevice {
  std::string root;             // name of its root complex; empty: shares no link with another
  double bytes_per_s = 0;       // of its own link; 0: no limit
  double root_bytes_per_s = 0;  // of its root complex, for all devices below; 0: no limit
};

/// Stage s is on device order[s % order.size()].
struct StageMapping {
  std::vector<int> order;  // every device once
  int shared = 0;          // neighbouring stages below one root complex: pairs of them
  std::string reason;      // one line, for people and the journal

  int device_of(int stage) const { return order[static_cast<size_t>(stage) % order.size()]; }
};

/// Chooses the order with, in this sequence, the fewest neighbouring stages below one root complex,
/// the least time lost there, and the earliest devices first. The time is that of a model: two
/// neighbours below one root complex each move the same bytes, and each gets half of its bandwidth.
/// The search is exact up to 16 devices. Beyond that, a rule alternates root complexes: the most
/// devices left first. With two or more devices, neighbouring stages are on two devices. Needs at
/// least one device and one stage. Pure: equal arguments give equal mappings.
StageMapping map_stages(std::span<const StageDevice> devices, int stages);

/// Why so many stages go round the devices in this order: one line.
std::string reason_of_order(std::span<const StageDevice> devices, std::span<const int> order,
                            int stages);

/// Pairs of neighbouring stages below one root complex if stage s is on device order[s % size].
int shared_neighbours(std::span<const StageDevice> devices, std::span<const int> order, int stages);

}  // namespace hearth
