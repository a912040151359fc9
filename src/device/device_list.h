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

/// From the beginning of a step on, a device has this budget.
struct BudgetDrop {
  int64_t step = 0;    // from 1
  uint64_t bytes = 0;  // at least 1
};

/// The keys after `virtual:` or `host:`. Keys that are not given are 0 or empty.
struct DeviceKeys {
  /// Of a virtual device: taken from the host's cores; 0: shares the host's cores. Of the host: how
  /// many of the cores that are left it uses; 0: all.
  int cores = 0;
  std::string costs;  // path of the cost table that paces the place
  // Of a virtual device alone.
  uint64_t memory = 0;               // mem: bytes; 0: no limit
  double h2d = 0, d2h = 0;           // bytes per second; 0: no limit
  std::optional<double> latency;     // seconds; none: 0
  std::string root;                  // name of a root complex
  double root_bandwidth = 0;         // bytes per second, equal for all devices of the root
  std::optional<BudgetDrop> shrink;  // never above `memory`
};

/// The number of an item `host`: all NUMA nodes.
inline constexpr int kAllNodes = -1;

struct DeviceItem {
  DeviceKind kind = DeviceKind::host;
  /// cuda: CUDA's number; virtual: from 0 in the order of the list; host: the system's number of a
  /// NUMA node, or kAllNodes.
  int number = 0;
  DeviceKeys keys;  // virtual and host only
  /// "host", "host:1", "cuda:1", "virtual:0"; "auto".
  std::string name() const;
};

/// Parses items separated by commas: `auto` (only item), `host[:cores=N/costs=FILE]` (once),
/// `host:N` with the same keys behind another colon (a NUMA node; each once, never beside `host`;
/// host:01 is host:1),
/// `cuda:N` (each once) or `virtual[:key=value/key=value...]`. `costs=` is the last key of its item:
/// everything up to the comma is the path. `3x` before an item repeats it. Never empty. A usage
/// error names the item and its fault, without the name of the option. Apart from paths, which have
/// no control characters, an accepted list contains only letters, digits and , : = / . - _ +.
std::vector<DeviceItem> parse_device_list(std::string_view text);

/// The most that all `cores` of a list together may ask for: several times the cores of the
/// machine. Each core asked for is a thread with memory of its own.
inline constexpr size_t kCoresPerCore = 4, kLeastCoreBound = 64;

/// Usage error if the list asks for more than the bound. `machine_cores` are the cores that the
/// process may use.
void check_asked_cores(std::span<const DeviceItem> items, size_t machine_cores);

/// The resources of the virtual devices of a list, and what the host keeps.
struct VirtualShares {
  std::vector<VirtualOptions> devices;  // in the order of the list
  std::vector<int> host_cpus;           // of its workers; empty: unbound
  int host_workers = 0;                 // at least one
  std::string warning = {};             // not empty if places share CPUs
};
/// Gives virtual devices workers of their own, as many as `cores` says, and the host the rest, or as
/// many as an item `host` asks for (an item `host:N` asks for cores of its node: host_nodes). If every worker has a CPU, the devices take theirs from the end of `cpus`, one
/// per core, and the host its own from the front. More `workers` than CPUs share all CPUs, unbound.
/// `workers` 0: one per CPU, at least one. The host has at least one worker. Counts asked for by name
/// hold: if they are more than there are workers, places share CPUs. If the host's workers compute
/// nothing (`host_computes`), they share CPUs without a warning, as they rarely run. The devices share a
/// fabric. Devices that name the same root share a root complex.
VirtualShares share_host(std::span<const DeviceItem> items, std::vector<int> cpus, int workers = 0,
                         bool host_computes = true);

}  // namespace hearth
