#include "setup/place_seat.h"

#include <algorithm>
#include <map>

#include "base/counted.h"
#include "base/error_format.h"
#include "base/numbers.h"
#include "plan/stage_mapping.h"

namespace hearth {

namespace {

PlaceSeat seat_below(const std::string& root, const Topology& topology) {
  PlaceSeat seat{root, std::nullopt, {}};
  if (const TopologyRoot* found = topology.find_root(root)) {
    seat.package = found->package;
    seat.nodes = found->nodes;
  }
  return seat;
}

/// CUDA's number of an accelerator, by the name "cuda0".
std::optional<int64_t> cuda_number(const PciDevice& device) {
  for (const std::string& name : device.names) {
    if (!name.starts_with("cuda")) continue;
    if (const auto number = parse_count(name.substr(4))) return number;
  }
  return std::nullopt;
}

PlaceSeat seat_of(const PciDevice& device) {
  PlaceSeat seat{device.root, device.package, device.nodes};
  if (const auto number = cuda_number(device)) seat.accelerator = "cuda:" + std::to_string(*number);
  seat.link_bytes_per_s = device.link_bytes_per_s;
  seat.memory = device.memory;
  return seat;
}

const PciDevice* gpu_of(const Topology& topology, int number) {
  bool named = false;  // whether any accelerator has a name
  for (const PciDevice& device : topology.accelerators) {
    const auto found = cuda_number(device);
    if (found == number) return &device;
    named = named || found;
  }
  return named ? nullptr : topology.accelerator(static_cast<size_t>(number));
}

}  // namespace

std::vector<PlaceSeat> device_seats(std::span<const DeviceItem> devices, const Topology& topology,
                                    Seats how, std::span<const std::string> addresses) {
  std::vector<PlaceSeat> seats;
  size_t standing_in = 0;
  for (size_t i = 0; i < devices.size(); ++i) {
    const DeviceItem& item = devices[i];
    const bool is_virtual = item.kind == DeviceKind::virtual_device;
    if (is_virtual && !item.keys.root.empty()) {
      seats.push_back(seat_below(item.keys.root, topology));
    } else if (is_virtual && how != Seats::keys) {
      const PciDevice* accelerator = topology.accelerator(standing_in++);
      if (accelerator == nullptr && how == Seats::address) {
        throw usage_error("--devices: {} stands in the place of accelerator {}, but {} has {}",
                          item.name(), standing_in, topology.source, topology.accelerators.size());
      }
      seats.push_back(accelerator != nullptr ? seat_of(*accelerator) : PlaceSeat{});
    } else {
      const bool known = i < addresses.size() && !addresses[i].empty();
      const bool by_number = !known && item.kind == DeviceKind::cuda && how != Seats::keys;
      const PciDevice* gpu = known       ? topology.find_device(addresses[i])
                             : by_number ? gpu_of(topology, item.number)
                                         : nullptr;
      if (by_number && gpu == nullptr) {
        throw usage_error("--devices: {} is not in {}, which has {}", item.name(),
                          quoted(topology.source),
                          counted(std::ssize(topology.accelerators), "accelerator"));
      }
      seats.push_back(gpu != nullptr ? seat_of(*gpu) : PlaceSeat{});
    }
  }
  return seats;
}

DeviceOrder order_of_stages(std::span<const DeviceItem> devices, std::span<const PlaceSeat> seats) {
  std::map<std::string, double> roots;
  for (const DeviceItem& item : devices) {
    double& rate = roots[item.keys.root];
    rate = std::max(rate, item.keys.root_bandwidth);
  }
  std::vector<StageDevice> mapped;
  for (size_t i = 0; i < devices.size(); ++i) {
    const DeviceKeys& keys = devices[i].keys;
    const double rate =
        keys.h2d > 0 && keys.d2h > 0 ? std::min(keys.h2d, keys.d2h) : std::max(keys.h2d, keys.d2h);
    mapped.push_back({seats[i].root, rate > 0 ? rate : seats[i].link_bytes_per_s,
                      keys.root.empty() ? 0 : roots[keys.root]});
  }
  DeviceOrder result;
  if (devices.empty()) return result;
  if (devices.size() == 1) return {{0}, {}};
  // Two rounds: the order that is best for them is so for any number of stages on each device, also
  // for one.
  const StageMapping mapping = map_stages(mapped, 2 * static_cast<int>(devices.size()));
  result.order.assign(mapping.order.begin(), mapping.order.end());
  result.mapped = std::move(mapped);
  return result;
}

}  // namespace hearth
