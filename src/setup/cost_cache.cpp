#include "setup/cost_cache.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/counted.h"
#include "base/file_ops.h"
#include "base/hash.h"
#include "base/user_cache.h"
#include "base/version.h"
#include "runtime/place_profile.h"

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

namespace {

constexpr const char* kKept = "kept";

const Json* member(const Json& of, const char* key) {
  return of.is_object() ? of.find(key) : nullptr;
}

/// A type and a number of cores, which are null on a GPU.
Json part_of(Compute dtype, const std::optional<int64_t>& cores) {
  Json part;
  part["dtype"] = dtype == Compute::f32 ? "f32" : "bf16";
  part["cores"] = cores ? Json(*cores) : Json();
  return part;
}

bool is_part(const Json& kept, const Json& part) {
  return member(kept, "dtype") && member(kept, "cores") &&
         kept.find("dtype")->dump() == part.find("dtype")->dump() &&
         kept.find("cores")->dump() == part.find("cores")->dump();
}

const Json* find_kept(const CostTableOrigin& origin, const Json& part) {
  const Json* const list = member(origin.machine, kKept);
  if (list == nullptr || !list->is_array()) return nullptr;
  for (const Json& kept : list->as_array()) {
    if (is_part(kept, part)) return &kept;
  }
  return nullptr;
}

}  // namespace

void set_spread(CostTableOrigin& origin, std::optional<double> spread) {
  origin.machine["spread"] = spread ? Json(*spread) : Json();
  origin.machine["noisy"] = spread && *spread > kNoisy;
}

bool is_noisy(const CostTableOrigin& origin) {
  const Json* const noisy = member(origin.machine, "noisy");
  return noisy != nullptr && noisy->is_bool() && noisy->as_bool();
}

CostTableOrigin origin_of(const CostTableOrigin& origin, Compute dtype, int64_t cores) {
  CostTableOrigin of = origin;
  const Json* const kept = find_kept(origin, part_of(dtype, cores));
  if (kept == nullptr) return of;
  for (const char* key : {"spread", "noisy"}) {
    const Json* const value = member(*kept, key);
    of.machine[key] = value != nullptr ? *value : Json();
  }
  if (const Json* const made = member(*kept, "made")) of.made = *made;
  return of;
}

CostTableFile with_kept_entries(CostTableFile newer, const CostTableFile& older) {
  if (!newer.origin.machine.is_object()) return newer;
  const std::vector<CostEntry>& made = newer.table.entries();
  std::vector<CostEntry> entries = made;
  JsonArray kept;
  for (const CostEntry& old : older.table.entries()) {
    if (std::any_of(made.begin(), made.end(), [&](const CostEntry& e) {
          return e.dtype == old.dtype && e.cores == old.cores;
        })) {
      continue;
    }
    entries.push_back(old);
    Json part = part_of(old.dtype, old.cores);
    if (std::any_of(kept.begin(), kept.end(),
                    [&](const Json& known) { return is_part(known, part); })) {
      continue;
    }
    if (const Json* const before = find_kept(older.origin, part)) {
      part = *before;
    } else {
      part["made"] = older.origin.made;
      for (const char* key : {"spread", "noisy"}) {
        if (const Json* const value = member(older.origin.machine, key)) part[key] = *value;
      }
    }
    kept.push_back(std::move(part));
  }
  if (kept.empty()) return newer;
  newer.table = CostTable(std::move(entries), newer.table.links(), newer.origin.device);
  newer.origin.machine[kKept] = std::move(kept);
  return newer;
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
