// The value of --devices: which devices a run has, in what order. Only read here; nothing is started.
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

/// What stands behind `virtual:`; what is not given is 0 or empty.
struct VirtualKeys {
  uint64_t memory = 0;        // mem: bytes; 0: no limit
  double h2d = 0, d2h = 0;    // bytes a second; 0: no limit
  double latency = 0;         // seconds
  int cores = 0;              // its own, of the host's; 0: shares the host's
  std::string root;           // name of a root complex
  double root_bandwidth = 0;  // bytes a second, the same for all that name the root
};

struct DeviceItem {
  DeviceKind kind = DeviceKind::host;
  int number = 0;    // cuda: as CUDA counts; virtual: from 0 in the order of the list
  VirtualKeys keys;  // virtual only
  /// "host", "cuda:1", "virtual:0"; "auto".
  std::string name() const;
};

/// Reads a list: items with commas between, each `auto` (alone), `host` (once), `cuda:N` (each once)
/// or `virtual[:key=value/key=value...]`, before it `3x` to repeat it. Never empty. A usage error that
/// names the item and what is wrong with it, without the name of the option. A list that is read has
/// letters, digits and , : = / . - _ + alone.
std::vector<DeviceItem> parse_device_list(std::string_view text);

/// What the virtual devices of a list get, and what is left.
struct VirtualShares {
  std::vector<VirtualOptions> devices;  // in the order of the list
  std::vector<int> host_cpus;
};
/// Gives virtual devices their own of these CPUs, one a core, from the end, and one root complex to
/// those that name the same. A usage error when none is left for the host.
VirtualShares share_host(std::span<const DeviceItem> items, std::vector<int> cpus);

}  // namespace hearth
