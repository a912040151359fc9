#include "setup/cost_cache.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/counted.h"
#include "base/file_ops.h"
#include "base/hash.h"
#include "base/user_cache.h"
#include "base/version.h"

namespace hearth {

std::string machine_identity(const Topology& topology) {
  Hasher hasher;
  hasher.update_field(topology.cpu_model);
  hasher.update_u64(topology.packages.size());
  hasher.update_u64(topology.cores.size());
  hasher.update_u64(topology.nodes.size());
  hasher.update_u64(topology.total_memory >> 30);  // a kernel keeps a little more or less
  hasher.update_field(build_info().version);
  return hasher.digest().hex().substr(0, 16);
}

Json machine_json(const Topology& topology) {
  return JsonObject{{"identity", machine_identity(topology)},
                    {"cpu", topology.cpu_model},
                    {"packages", static_cast<int64_t>(topology.packages.size())},
                    {"cores", static_cast<int64_t>(topology.cores.size())},
                    {"memory_bytes", topology.total_memory}};
}

std::string cost_cache_directory(const Topology& topology) {
  const std::string cache = user_cache_directory();
  return cache.empty() ? "" : cache + "/costs/" + machine_identity(topology);
}

std::string table_path(const std::string& directory, const std::string& place) {
  std::string name = place;
  std::replace(name.begin(), name.end(), ':', '-');
  return directory + "/" + name + ".json";
}

std::optional<CostTableFile> find_table(const std::string& directory, const std::string& place) {
  if (directory.empty()) return std::nullopt;
  const std::string path = table_path(directory, place);
  if (file_info(path).kind == FileKind::none) return std::nullopt;
  return read_cost_table_file(path);
}

std::string age_of(const CostTableOrigin& origin, double now) {
  if (!origin.made.is_number()) return {};
  const double seconds = std::max(0.0, now - origin.made.as_double());
  const auto text = [&](double unit, const char* name) {
    return counted(static_cast<int64_t>(seconds / unit), name);
  };
  if (seconds < 2 * 60) return text(1, "second");
  if (seconds < 2 * 3600) return text(60, "minute");
  if (seconds < 2 * 86400) return text(3600, "hour");
  return text(86400, "day");
}

double seconds_now() {
  using namespace std::chrono;
  return std::floor(duration<double>(system_clock::now().time_since_epoch()).count());
}

}  // namespace hearth
