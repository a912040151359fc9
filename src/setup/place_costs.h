// The cost tables that a list of devices names (costs=).
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "device/device_list.h"
#include "plan/cost_table.h"

namespace hearth {

/// Reads each file of a list once. Input error, naming the file, if it is not a cost table.
class ListedTables {
 public:
  explicit ListedTables(std::span<const DeviceItem> items);
  /// The table of an item of the list; null if it has none.
  std::shared_ptr<const CostTable> of(const DeviceItem& item) const;

 private:
  std::map<std::string, std::shared_ptr<const CostTable>> tables_;  // by path
};

/// Gives a virtual device the links of its table. Keys of the list win: h2d and d2h over the rates,
/// latency over both latencies.
void take_links(const CostTable& table, const DeviceKeys& keys, VirtualOptions& device);

}  // namespace hearth
