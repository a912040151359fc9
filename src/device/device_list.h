// Parses the value of --devices: which devices a run has, in what order. Starts nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/virtual_device.h"

namespace hearth {

enum class DeviceKind : uint8_t { automatic, host, cuda, virtual_device };

/// The keys after `virtual:`. Keys that are not given are 0 or empty.
struct VirtualKeys {
  uint64_t memory = 0;        // mem: bytes; 0: no limit
  double h2d = 0, d2h = 0;    // bytes per second; 0: no limit
  double latency = 0;         // seconds
  int cores = 0;              // taken from the host's cores; 0: shares the host's cores
  std::string root;           // name of a root complex
  double root_bandwidth = 0;  // bytes per second, equal for all devices of the root
};

struct DeviceItem {
  DeviceKind kind = DeviceKind::host;
  int number = 0;    // cuda: CUDA's number; virtual: from 0 in the order of the list
  VirtualKeys keys;  // virtual only
  /// "host", "cuda:1", "virtual:0"; "auto".
  std::string name() const;
};

/// Parses items separated by commas: `auto` (only item), `host` (once), `cuda:N` (each once) or
/// `virtual[:key=value/key=value...]`. `3x` before an item repeats it. Never empty. A usage error
/// names the item and its fault, without the name of the option. An accepted list contains only
/// letters, digits and , : = / . - _ +.
std::vector<DeviceItem> parse_device_list(std::string_view text);

/// The resources of the virtual devices of a list, and the CPUs that the host keeps.
struct VirtualShares {
  std::vector<VirtualOptions> devices;  // in the order of the list
  std::vector<int> host_cpus;
};
/// Gives virtual devices CPUs of their own from the end of `cpus`, one per core. Devices that name
/// the same root share a root complex. Usage error if no CPU is left for the host.
VirtualShares share_host(std::span<const DeviceItem> items, std::vector<int> cpus);

}  // namespace hearth
