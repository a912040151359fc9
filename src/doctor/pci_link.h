// The speed that a PCIe link can have, from the system.
#pragma once

#include <optional>
#include <string>

namespace hearth {

struct PciLink {
  int lanes = 0, most_lanes = 0;  // in use; of the device
  double transfers_per_s = 0;     // of a lane, at the device's best
  /// Payload of all lanes in use, one way, at the device's best speed: an idle GPU slows its link
  /// down, but keeps its lanes.
  double bytes_per_s() const;
  int generation() const;  // 1 to 6; 0: of a speed that no generation has
};

/// The link of the PCI device at an address; nothing if the system does not say. Tests pass a
/// directory as `root` that stands for "/".
std::optional<PciLink> read_pci_link(const std::string& address, const std::string& root = "");

}  // namespace hearth
