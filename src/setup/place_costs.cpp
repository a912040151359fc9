#include "setup/place_costs.h"

#include "setup/cost_table_file.h"

namespace hearth {

ListedTables::ListedTables(std::span<const DeviceItem> items) {
  for (const DeviceItem& item : items) {
    const std::string& path = item.keys.costs;
    if (path.empty() || tables_.contains(path)) continue;
    tables_.emplace(path, std::make_shared<const CostTable>(read_cost_table(path)));
  }
}

std::shared_ptr<const CostTable> ListedTables::of(const DeviceItem& item) const {
  if (item.keys.costs.empty()) return nullptr;
  return tables_.at(item.keys.costs);
}

void take_links(const CostTable& table, const DeviceKeys& keys, VirtualOptions& device) {
  if (const CostLink* link = table.link_to(device.name)) {
    if (keys.h2d == 0) device.h2d = link->bytes_per_s;
    if (!keys.latency) device.latency = link->latency_s;
  }
  if (const CostLink* link = table.link_from(device.name)) {
    if (keys.d2h == 0) device.d2h = link->bytes_per_s;
    if (!keys.latency) device.d2h_latency = link->latency_s;
  }
}

}  // namespace hearth
