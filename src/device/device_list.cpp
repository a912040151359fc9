#include "device/device_list.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/error_format.h"
#include "base/numbers.h"
#include "base/setting.h"

namespace hearth {
namespace {

constexpr size_t kMostDevices = 64;
constexpr int64_t kMostNumber = 1023;
constexpr double kMostLatency = 60;  // seconds
/// More cores than any machine has: check_asked_cores refuses them, and names the machine's bound.
constexpr int64_t kTooManyCores = 1 << 20;

[[noreturn]] void refuse(std::string_view item, const std::string& what) {
  throw usage_error("{}: {}", quoted(item), what);
}

// The parts of a text between separators; one empty part of an empty text.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

// Takes the "3x" off the front of an item.
size_t take_count(std::string_view& item, std::string_view whole) {
  const size_t digits = std::min(item.find_first_not_of("0123456789"), item.size());
  if (digits == 0 || digits == item.size() || item[digits] != 'x') return 1;
  const auto count = parse_count(item.substr(0, digits));
  if (!count || *count < 1 || *count > static_cast<int64_t>(kMostDevices)) {
    refuse(whole, fmt::format("a device can be repeated 1 to {} times", kMostDevices));
  }
  item.remove_prefix(digits + 1);
  return static_cast<size_t>(*count);
}

double rate(std::string_view value, std::string_view key, std::string_view item) {
  const auto bytes = parse_size(value);
  if (!bytes || *bytes == 0) {
    refuse(item, fmt::format("{}=: expected bytes per second, such as 12G, found {}", key,
                             quoted(value)));
  }
  return static_cast<double>(*bytes);
}

// A path may have any character but a comma, which ends the item. A line may print it.
bool is_plain_path(std::string_view path) {
  return !path.empty() && std::none_of(path.begin(), path.end(),
                                       [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

/// "100:6G"; nullopt if it is anything else.
std::optional<BudgetDrop> parse_drop(std::string_view value) {
  const size_t colon = std::min(value.find(':'), value.size());
  const auto step = parse_count(value.substr(0, colon));
  if (!step || *step < 1 || colon == value.size()) return std::nullopt;
  const auto bytes = parse_size(value.substr(colon + 1));
  if (!bytes || *bytes == 0) return std::nullopt;
  return BudgetDrop{*step, *bytes};
}

void set_key(DeviceKeys& keys, DeviceKind kind, std::string_view key, std::string_view value,
             std::string_view item) {
  const auto expected = [&](const std::string& what) {
    refuse(item, fmt::format("{}=: expected {}, found {}", key, what, quoted(value)));
  };
  const bool host = kind == DeviceKind::host;
  if (key == "cores") {
    const auto cores = parse_count(value);
    if (!cores || *cores < 1) expected("a number of cores, at least 1");
    keys.cores = static_cast<int>(std::min(*cores, kTooManyCores));
  } else if (key == "costs") {
    if (!is_plain_path(value)) expected("the path of a cost table");
    keys.costs = value;
  } else if (host) {
    refuse(item, fmt::format("unknown key {}; the host has cores, costs", quoted(key)));
  } else if (key == "mem") {
    const auto bytes = parse_size(value);
    if (!bytes || *bytes == 0) expected("bytes, such as 8G");
    keys.memory = *bytes;
  } else if (key == "h2d") {
    keys.h2d = rate(value, key, item);
  } else if (key == "d2h") {
    keys.d2h = rate(value, key, item);
  } else if (key == "latency") {
    const auto seconds = parse_latency(value);
    if (!seconds || *seconds > kMostLatency) expected("a time, such as 10us, at most a minute");
    keys.latency = *seconds;
  } else if (key == "root") {
    const bool plain = std::all_of(value.begin(), value.end(), [](unsigned char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
             c == '-' || c == '_';
    });
    if (value.empty() || !plain) expected("a name of letters, digits, - and _");
    keys.root = value;
  } else if (key == "root-bw") {
    keys.root_bandwidth = rate(value, key, item);
  } else if (key == "shrink") {
    keys.shrink = parse_drop(value);
    if (!keys.shrink) expected("STEP:BYTES, such as 100:6G");
  } else {
    refuse(item,
           fmt::format("unknown key {}; a virtual device has mem, h2d, d2h, latency, cores, root, "
                       "root-bw, shrink, costs",
                       quoted(key)));
  }
}

// costs= comes last, since its path may have slashes.
std::vector<std::string_view> split_keys(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const bool is_path = text.starts_with("costs=");
    const size_t end = is_path ? text.size() : std::min(text.find('/'), text.size());
    parts.push_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

/// A part of `text` that has no equals sign.
[[noreturn]] void refuse_part(std::string_view part, std::string_view text, DeviceKind kind,
                              std::string_view item) {
  const bool first = part.data() == text.data();
  const std::string found = ", found " + quoted(part);
  if (kind == DeviceKind::host && first) {
    refuse(item,
           fmt::format("expected key=value or the number of a NUMA node, 0 to {}", kMostNumber) +
               found);
  }
  if (kind == DeviceKind::virtual_device && first && parse_count(part)) {
    refuse(item, "expected key=value" + found +
                     "; virtual devices have no numbers in a list: 2xvirtual means two");
  }
  refuse(item, "expected key=value between slashes" + found);
}

DeviceKeys parse_keys(std::string_view text, DeviceKind kind, std::string_view item) {
  DeviceKeys keys;
  std::vector<std::string_view> seen;
  for (const std::string_view part : split_keys(text)) {
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) refuse_part(part, text, kind, item);
    const std::string_view key = part.substr(0, equals);
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      refuse(item, fmt::format("{} is given twice", quoted(key)));
    }
    seen.push_back(key);
    set_key(keys, kind, key, part.substr(equals + 1), item);
  }
  if (keys.shrink && keys.memory > 0 && keys.shrink->bytes > keys.memory) {
    refuse(item, "shrink= is more than mem=; a budget can only fall");
  }
  return keys;
}

/// Takes the "1" or the "1:" of a NUMA node off the front of what follows "host:". kAllNodes if keys
/// stand there.
int take_node(std::string_view& rest, std::string_view whole) {
  const size_t end = std::min(rest.find(':'), rest.size());
  const std::string_view first = rest.substr(0, end);
  if (first.find_first_not_of("0123456789") != std::string_view::npos || first.empty()) {
    return kAllNodes;
  }
  const auto number = parse_count(first);
  if (!number || *number > kMostNumber) {
    refuse(whole, fmt::format("expected host:N, N from 0 to {}", kMostNumber));
  }
  const bool has_keys = end < rest.size();
  rest.remove_prefix(has_keys ? end + 1 : end);
  if (has_keys && rest.empty()) refuse(whole, "expected key=value behind the last colon");
  return static_cast<int>(*number);
}

DeviceItem parse_item(std::string_view text, std::string_view whole) {
  DeviceItem item;
  if (text == "auto" || text == "host") {
    item.kind = text == "auto" ? DeviceKind::automatic : DeviceKind::host;
    if (item.kind == DeviceKind::host) item.number = kAllNodes;
  } else if (text.starts_with("cuda:")) {
    const auto number = parse_count(text.substr(5));
    if (!number || *number < 0 || *number > kMostNumber) {
      refuse(whole, fmt::format("expected cuda:N, N from 0 to {}", kMostNumber));
    }
    item.kind = DeviceKind::cuda;
    item.number = static_cast<int>(*number);
  } else if (text == "virtual" || text.starts_with("virtual:")) {
    item.kind = DeviceKind::virtual_device;
    if (text != "virtual") item.keys = parse_keys(text.substr(8), item.kind, whole);
  } else if (text.starts_with("host:")) {
    item.kind = DeviceKind::host;
    std::string_view rest = text.substr(5);
    item.number = take_node(rest, whole);
    if (!rest.empty() || item.number == kAllNodes) {
      item.keys = parse_keys(rest, item.kind, whole);
    }
  } else {
    refuse(whole,
           "expected auto, host[:N], cuda:N or virtual[:key=value/...]; 3x in front repeats one");
  }
  return item;
}

// What holds between the items of a list.
void check_together(const std::vector<DeviceItem>& items) {
  std::map<std::string, double> roots;
  std::vector<std::string> names;
  const auto is_whole_host = [](const DeviceItem& item) {
    return item.kind == DeviceKind::host && item.number == kAllNodes;
  };
  const bool all_nodes = std::any_of(items.begin(), items.end(), is_whole_host);
  for (const DeviceItem& item : items) {
    if (item.kind == DeviceKind::automatic && items.size() > 1) {
      throw usage_error("auto stands alone; name the devices instead");
    }
    if (all_nodes && item.kind == DeviceKind::host && !is_whole_host(item)) {
      throw usage_error("host and {}: host means all NUMA nodes; list host or its nodes",
                        item.name());
    }
    const std::string name = item.name();
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      throw usage_error("{} twice; only virtual devices can be repeated", name);
    }
    names.push_back(name);
    if (item.keys.root.empty()) {
      if (item.keys.root_bandwidth > 0)
        throw usage_error("{}: root-bw= without root=; name the root complex", name);
      continue;
    }
    double& bandwidth = roots[item.keys.root];
    if (item.keys.root_bandwidth == 0) continue;
    if (bandwidth != 0 && bandwidth != item.keys.root_bandwidth) {
      throw usage_error("root {}: two values of root-bw; give one", quoted(item.keys.root));
    }
    bandwidth = item.keys.root_bandwidth;
  }
}

}  // namespace

std::string DeviceItem::name() const {
  switch (kind) {
    case DeviceKind::automatic: return "auto";
    case DeviceKind::host: return number == kAllNodes ? "host" : "host:" + std::to_string(number);
    case DeviceKind::cuda: return "cuda:" + std::to_string(number);
    case DeviceKind::virtual_device: return "virtual:" + std::to_string(number);
  }
  return {};
}

std::vector<DeviceItem> parse_device_list(std::string_view text) {
  std::vector<DeviceItem> items;
  int virtual_devices = 0;
  for (const std::string_view whole : split(text, ',')) {
    std::string_view rest = whole;
    const size_t count = take_count(rest, whole);
    DeviceItem item = parse_item(rest, whole);
    for (size_t i = 0; i < count; ++i) {
      if (item.kind == DeviceKind::virtual_device) item.number = virtual_devices++;
      items.push_back(item);
    }
    if (items.size() > kMostDevices) {
      throw usage_error("more than {} devices; name fewer", kMostDevices);
    }
  }
  check_together(items);
  return items;
}

namespace {

std::map<std::string, std::shared_ptr<RootComplex>> roots_of(std::span<const DeviceItem> items) {
  std::map<std::string, std::shared_ptr<RootComplex>> roots;
  for (const DeviceItem& item : items) {
    const DeviceKeys& keys = item.keys;
    if (keys.root.empty() || keys.root_bandwidth <= 0) continue;
    roots.try_emplace(keys.root, std::make_shared<RootComplex>(keys.root_bandwidth));
  }
  return roots;
}

/// The workers of a run, each with a CPU of its own or none with one.
class Workers {
 public:
  Workers(std::vector<int> cpus, int workers) : cpus_(std::move(cpus)) {
    count_ = workers > 0 ? static_cast<size_t>(workers) : std::max<size_t>(1, cpus_.size());
    if (count_ > cpus_.size()) cpus_.clear();
    if (!cpus_.empty()) cpus_.resize(count_);
    left_ = count_;
  }
  size_t count() const { return count_; }
  /// The CPUs of the last `n` workers that are left, in order. If fewer are left, the workers of the
  /// whole run are there once more. Empty: unbound.
  std::vector<int> take(size_t n) {
    if (n > left_) left_ = count_;
    if (cpus_.empty() || n > count_) return {};
    left_ -= n;
    const auto begin = cpus_.begin() + static_cast<std::ptrdiff_t>(left_);
    return {begin, begin + static_cast<std::ptrdiff_t>(n)};
  }
  /// The CPUs of the first `n` workers.
  std::vector<int> first(size_t n) const {
    if (cpus_.empty() || n > count_) return {};
    return {cpus_.begin(), cpus_.begin() + static_cast<std::ptrdiff_t>(n)};
  }

 private:
  std::vector<int> cpus_;  // one per worker; empty: unbound
  size_t count_ = 0;
  size_t left_ = 0;
};

/// What the items of a kind ask for by name. NUMA nodes are not counted: each has its own cores.
size_t asked_cores(std::span<const DeviceItem> items, DeviceKind kind) {
  size_t cores = 0;
  for (const DeviceItem& item : items) {
    if (item.kind != kind || (kind == DeviceKind::host && item.number != kAllNodes)) continue;
    cores += static_cast<size_t>(item.keys.cores);
  }
  return cores;
}

}  // namespace

void check_asked_cores(std::span<const DeviceItem> items, size_t machine_cores) {
  size_t asked = 0;
  for (const DeviceItem& item : items) asked += static_cast<size_t>(item.keys.cores);
  const size_t most = std::max(kLeastCoreBound, kCoresPerCore * machine_cores);
  if (asked <= most) return;
  throw usage_error(
      "{}: cores= asks for more than {} cores in all, the most on a machine with {}; ask for fewer",
      spelled(Setting::devices), most, counted(static_cast<int64_t>(machine_cores), "core"));
}

VirtualShares share_host(std::span<const DeviceItem> items, std::vector<int> cpus, int workers,
                         bool host_computes) {
  VirtualShares shares;
  const auto roots = roots_of(items);
  const auto fabric = std::make_shared<Fabric>();
  Workers all(std::move(cpus), workers);
  const size_t of_devices = asked_cores(items, DeviceKind::virtual_device);
  const size_t of_host = asked_cores(items, DeviceKind::host);
  const size_t asked = of_devices + std::max<size_t>(host_computes ? 1 : 0, of_host);
  for (const DeviceItem& item : items) {
    const DeviceKeys& keys = item.keys;
    if (item.kind != DeviceKind::virtual_device) continue;
    VirtualOptions& device = shares.devices.emplace_back();
    device.name = item.name();
    device.fabric = fabric;
    if (keys.memory > 0) device.memory = keys.memory;
    device.h2d = keys.h2d;
    device.d2h = keys.d2h;
    device.latency = keys.latency.value_or(0);
    if (const auto root = roots.find(keys.root); root != roots.end()) device.root = root->second;
    const auto own = static_cast<size_t>(keys.cores);
    if (own == 0) continue;
    device.workers = keys.cores;
    device.cores = all.take(own);
  }
  if (asked > all.count()) {
    shares.warning = fmt::format(
        "{}: {} asked for{}, of {}: places share cores and wait for each other",
        spelled(Setting::devices), counted(static_cast<int64_t>(of_devices + of_host), "core"),
        of_host == 0 && host_computes ? " beside one for the host" : "", all.count());
  }
  const size_t left = all.count() > of_devices ? all.count() - of_devices : 1;
  const size_t host = of_host > 0 ? of_host : left;
  shares.host_workers = static_cast<int>(host);
  shares.host_cpus = all.first(host);
  return shares;
}

}  // namespace hearth
