// Memory limits of Linux control groups. A limit holds for a group and all below it, so the lowest
// on the way from the process's group to the root counts.
#include "topology/control_group.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "topology/system_file.h"

namespace hearth {
namespace {

// Bytes in a limit file; 0 for "max", a missing file, or the "no limit" of version 1 (near 2^63).
uint64_t limit_in(const std::string& path) {
  const std::string text = read_system_file(path);
  uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  return error == std::errc() && bytes < uint64_t{1} << 62 ? bytes : 0;
}

uint64_t lowest_above(const std::string& mount, std::string group, const std::string& file) {
  uint64_t lowest = 0;
  while (true) {
    const uint64_t limit = limit_in(mount + group + "/" + file);
    if (limit > 0) lowest = lowest == 0 ? limit : std::min(lowest, limit);
    if (group.empty()) return lowest;
    group.resize(group.find_last_of('/'));
  }
}

bool lists_memory(std::string_view controllers) {
  while (!controllers.empty()) {
    const size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == "memory") return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

}  // namespace

uint64_t control_group_memory_limit(const std::string& root) {
  const std::string groups = read_system_file(root + "/proc/self/cgroup");
  uint64_t lowest = 0;
  for (std::string_view rest = groups; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);  // number:controllers:/path
    rest.remove_prefix(std::min(end + 1, rest.size()));

    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    std::string group(line.substr(second + 1));
    if (group.empty() || group[0] != '/') continue;
    if (group == "/") group.clear();

    uint64_t limit = 0;
    if (controllers.empty()) {
      limit = lowest_above(root + "/sys/fs/cgroup", group, "memory.max");
    } else if (lists_memory(controllers)) {
      limit = lowest_above(root + "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
    }
    if (limit > 0) lowest = lowest == 0 ? limit : std::min(lowest, limit);
  }
  return lowest;
}

}  // namespace hearth
