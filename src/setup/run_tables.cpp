#include "setup/run_tables.h"

#include <cmath>
#include <utility>

#include "base/error_format.h"
#include "base/file_ops.h"

namespace hearth {
namespace {

/// Of the tables of a run: every saved state holds them.
constexpr uint64_t kMostTableBytes = uint64_t{8} << 20;
constexpr TableSource kSources[] = {TableSource::profile, TableSource::cache,
                                    TableSource::measured};

RunTable run_table(CostTableFile file, TableSource source) {
  return {std::make_shared<const CostTable>(std::move(file.table)), std::move(file.origin), source,
          false};
}

/// Where a table was measured; none if its file says so for people only.
std::optional<std::string> identity_in(const CostTableOrigin& origin) {
  const Json* identity = origin.machine.is_object() ? origin.machine.find("identity") : nullptr;
  if (identity == nullptr || !identity->is_string()) return std::nullopt;
  return identity->as_string();
}

/// Reads the members of a record; refuses what a run does not write.
class RecordReader {
 public:
  explicit RecordReader(const std::string& source) : source_(source) {}

  [[noreturn]] void refuse(const std::string& what) const {
    throw storage_error(
        "{}: costs: {}; give --profile DIR and --allow-change profile to plan by other tables",
        source_, what);
  }
  const Json& member(const Json& json, const char* name) const {
    const Json* value = json.is_object() ? json.find(name) : nullptr;
    if (value == nullptr) refuse(std::string("\"") + name + "\" is missing");
    return *value;
  }
  std::string text(const Json& json, const char* name) const {
    const Json& value = member(json, name);
    if (!value.is_string()) refuse(std::string("\"") + name + "\": expected a text");
    return value.as_string();
  }
  double rate(const Json& json, const char* name) const {
    const Json& value = member(json, name);
    const double rate = value.is_number() ? value.as_double() : -1;
    if (!std::isfinite(rate) || rate < 0) {
      refuse(std::string("\"") + name + "\": expected a number, at least 0");
    }
    return rate;
  }
  TableSource source_of(const std::string& place, const std::string& name) const {
    for (const TableSource source : kSources) {
      if (name_of(source) == name) return source;
    }
    refuse(place + ": unknown source " + quoted(name));
  }
  RunTable table(const std::string& place, const Json& saved) const {
    const TableSource source = source_of(place, text(saved, "source"));
    RunTable table;
    try {
      const Json& document = member(saved, "table");
      table = run_table(parse_cost_table_file(document.dump(), place), source);
    } catch (const Error& error) {
      if (error.code() != ExitCode::input) throw;
      refuse(error.what());
    }
    if (table.table->digest().hex() != text(saved, "digest")) {
      refuse("the table of " + place + " is not the one that was saved (another digest)");
    }
    table.saved = true;
    return table;
  }

 private:
  const std::string& source_;
};

}  // namespace

std::string name_of(TableSource source) {
  switch (source) {
    case TableSource::profile: return "profile";
    case TableSource::cache: return "cache";
    case TableSource::measured: break;
  }
  return "measured";
}

const RunTable* RunTables::find(const std::string& place) const {
  const auto found = by_place.find(place);
  return found != by_place.end() ? &found->second : nullptr;
}

RunTables read_profile(const std::string& directory, std::span<const std::string> places,
                       const Topology* here) {
  const std::string named = "--profile " + quoted(directory);
  if (file_info(directory).kind != FileKind::directory) {
    throw input_error("{}: not a directory; 'hearth profile --out DIR' makes one", named);
  }
  RunTables tables;
  uint64_t bytes = 0;
  for (const std::string& place : places) {
    std::optional<CostTableFile> file = find_table(directory, place);
    const std::string path = table_path(directory, place);
    if (!file) {
      throw input_error(
          "{}: no table of {} ({}); measure it with 'hearth profile --devices LIST --out DIR'",
          named, place, path);
    }
    if (file->origin.device != place) {
      throw input_error("{}: the table of {}, not of {}; give each place its own table", path,
                        quoted(file->origin.device), place);
    }
    const auto there = identity_in(file->origin);
    if (here != nullptr && there && *there != machine_identity(*here)) {
      throw input_error(
          "{}: measured on another machine or by another version ({}, this one is {}); measure "
          "again with 'hearth profile --out DIR'",
          path, quoted(*there), machine_identity(*here));
    }
    bytes += cost_table_json(file->table, file->origin).dump().size();
    if (bytes > kMostTableBytes) {
      throw input_error(
          "{}: with the tables before it more than {} MiB, which every saved state would hold; "
          "keep "
          "the entries of this model alone",
          path, kMostTableBytes >> 20);
    }
    tables.by_place.emplace(place, run_table(std::move(*file), TableSource::profile));
  }
  return tables;
}

Json tables_record(const RunTables& tables) {
  Json record = JsonObject{};
  record["tables"] = JsonObject{};
  for (const auto& [place, table] : tables.by_place) {
    record["tables"][place] = JsonObject{{"source", name_of(table.source)},
                                         {"digest", table.table->digest().hex()},
                                         {"table", cost_table_json(*table.table, table.origin)}};
  }
  if (tables.best) {
    record["best"] = JsonObject{{"flops_per_s", tables.best->flops_per_s},
                                {"update_params_per_s", tables.best->update_params_per_s}};
  }
  return record;
}

RunTables tables_in(const Json& record, const std::string& source) {
  const RecordReader reader(source);
  RunTables tables;
  const Json& saved = reader.member(record, "tables");
  if (!saved.is_object()) reader.refuse("\"tables\": expected an object");
  for (const auto& [place, table] : saved.as_object()) {
    tables.by_place.emplace(place, reader.table(place, table));
  }
  if (const Json* best = record.find("best")) {
    tables.best =
        MachineRates{reader.rate(*best, "flops_per_s"), reader.rate(*best, "update_params_per_s")};
  }
  return tables;
}

}  // namespace hearth
