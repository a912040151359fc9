// Any text is refused with a usage error of one line, or read to a list that keeps its rules; and what
// its devices take of the host's cores is there.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string_view>

#include "base/error.h"
#include "device/device_list.h"
#include "support/bounded.h"

namespace {

using namespace hearth;

void require(bool holds) {
  if (!holds) std::abort();
}

bool is_one_line(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  }
  return !text.empty();
}

void check_items(const std::vector<DeviceItem>& items) {
  require(!items.empty() && items.size() <= 64);
  std::set<std::string> names;
  bool all_nodes = false, a_node = false;
  for (const DeviceItem& item : items) {
    require(names.insert(item.name()).second);
    require(item.kind != DeviceKind::automatic || items.size() == 1);
    require(item.keys.cores >= 0 && is_one_line("costs=" + item.keys.costs));
    require(item.keys.root.empty() || item.keys.latency.value_or(0) <= 60);
    if (item.kind != DeviceKind::host) continue;
    (item.number == kAllNodes ? all_nodes : a_node) = true;
    // The name of an item is an item.
    require(parse_device_list(item.name())[0].number == item.number);
  }
  require(!all_nodes || !a_node);
}

/// `workers` on three cores.
void check_shares(const std::vector<DeviceItem>& items, int workers) {
  VirtualShares shares;
  try {
    shares = share_host(items, {3, 5, 7}, workers);
  } catch (const Error& error) {
    require(error.code() == ExitCode::usage && is_one_line(error.what()));
    return;
  }
  const int all = workers == 0 ? 3 : workers;
  int sum = shares.host_workers;
  std::multiset<int> bound(shares.host_cpus.begin(), shares.host_cpus.end());
  size_t device = 0;
  for (const DeviceItem& item : items) {
    if (item.kind != DeviceKind::virtual_device) continue;
    const VirtualOptions& share = shares.devices.at(device++);
    require(share.name == item.name() && share.workers == item.keys.cores);
    require(share.root == nullptr || !item.keys.root.empty());
    sum += share.workers;
    bound.insert(share.cores.begin(), share.cores.end());
  }
  require(device == shares.devices.size());
  require(shares.host_workers >= 1);
  if (!shares.warning.empty()) return require(sum > all && is_one_line(shares.warning));
  require(sum <= all);
  require(bound.size() == (all <= 3 ? static_cast<size_t>(sum) : 0));
  for (const int cpu : bound) require(bound.count(cpu) == 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<DeviceItem> items;
  try {
    const test::Bounded bound(size, {.times = 256});
    items = parse_device_list(text);
  } catch (const Error& error) {
    require(error.code() == ExitCode::usage && is_one_line(error.what()));
    return 0;
  }
  check_items(items);
  for (const int workers : {0, 1, 3, 8}) check_shares(items, workers);
  return 0;
}
