// The cost tables that a run plans by, by place: from the user (--profile DIR), from the user's cache,
// or measured at the start. Saved states hold them, so that a resume plans by the same.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/json.h"
#include "plan/bound.h"
#include "setup/cost_cache.h"
#include "setup/cost_table_file.h"

namespace hearth {

enum class TableSource : uint8_t { profile, cache, measured };
std::string name_of(TableSource source);

struct RunTable {
  std::shared_ptr<const CostTable> table;
  CostTableOrigin origin;
  TableSource source = TableSource::measured;
  bool saved = false;  // from a saved state; `source` is then where that run had it from

  /// Whether decisions read it. Tables of two starts differ, so what was measured at a start predicts
  /// times and decides nothing.
  bool decides() const { return source != TableSource::measured; }
};

/// Tables of places without costs=, and what the bound of a step needs.
struct RunTables {
  std::map<std::string, RunTable> by_place;
  std::optional<MachineRates> best;  // of this machine; measured at the first start

  const RunTable* find(const std::string& place) const;
};

/// Reads the tables of some places from a directory that `hearth profile --out DIR` made. Input error
/// if it is no directory, a table is missing or cannot be read, or if a table is of another place, or
/// of another machine or version of the program, or if all are larger than 8 MiB. A file whose
/// machine is a text fits any machine. `here`: this machine; null: any machine fits.
RunTables read_profile(const std::string& directory, std::span<const std::string> places,
                       const Topology* here);

/// A saved state's record of the tables.
Json tables_record(const RunTables& tables);
/// Reads a record. Storage error that starts with `source` if it is damaged: if it has another shape,
/// or if a table does not have the digest that it was saved with.
RunTables tables_in(const Json& record, const std::string& source);

}  // namespace hearth
