#include "doctor/pci_link.h"

#include <algorithm>
#include <iterator>

#include "base/numbers.h"
#include "topology/system_file.h"

namespace hearth {
namespace {

// "16.0 GT/s PCIe".
double transfers_in(const std::string& path) {
  const std::string line = read_system_line(path);
  const auto number = parse_number(line.substr(0, line.find(' ')));
  return number && *number > 0 && *number < 1000 && line.find("GT/s") != std::string::npos
             ? *number * 1e9
             : 0;
}

int lanes_in(const std::string& path) {
  const auto lanes = parse_count(read_system_line(path));
  return lanes && *lanes > 0 && *lanes <= 32 ? static_cast<int>(*lanes) : 0;
}

// What the encoding leaves: 8 of 10 bits in generations 1 and 2, 128 of 130 in 3 to 5, 242 of 256
// bytes after.
double payload_share(double transfers_per_s) {
  if (transfers_per_s < 6e9) return 8.0 / 10;
  if (transfers_per_s < 40e9) return 128.0 / 130;
  return 242.0 / 256;
}

}  // namespace

double PciLink::bytes_per_s() const {
  return lanes * transfers_per_s * payload_share(transfers_per_s) / 8;
}

int PciLink::generation() const {
  constexpr double kTransfers[] = {2.5e9, 5e9, 8e9, 16e9, 32e9, 64e9};
  const auto* found = std::find(std::begin(kTransfers), std::end(kTransfers), transfers_per_s);
  return found == std::end(kTransfers) ? 0 : static_cast<int>(found - kTransfers) + 1;
}

std::optional<PciLink> read_pci_link(const std::string& address, const std::string& root) {
  const std::string folder = root + "/sys/bus/pci/devices/" + address + "/";
  PciLink link;
  link.lanes = lanes_in(folder + "current_link_width");
  link.most_lanes = lanes_in(folder + "max_link_width");
  link.transfers_per_s = transfers_in(folder + "max_link_speed");
  if (link.lanes == 0 || link.transfers_per_s <= 0) return std::nullopt;
  return link;
}

}  // namespace hearth
