// Reads and writes files of cost tables (format: docs/cost-tables.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "plan/cost_table.h"

namespace hearth {

inline constexpr uint64_t kMaxCostTableBytes = uint64_t{16} << 20;

/// Reads a table from a regular file of at most 16 MiB. Input error, naming the file, the entry and
/// the field, for anything that the format does not allow.
CostTable read_cost_table(const std::string& path);

/// What a file says of its table, for people.
struct CostTableOrigin {
  std::string device;  // the place: "host", "cuda:0"
  Json machine;        // a text or an object
  Json made;           // a text or a number
};

/// The document of a table. Reading it gives the same entries and links, to the bit.
Json cost_table_json(const CostTable& table, const CostTableOrigin& origin);
/// Replaces the file.
void write_cost_table(const std::string& path, const CostTable& table,
                      const CostTableOrigin& origin);

/// A table with its origin, as in the file.
struct CostTableFile {
  CostTable table;
  CostTableOrigin origin;
};
/// Errors as read_cost_table.
CostTableFile read_cost_table_file(const std::string& path);

/// The same of a document that is parsed already; messages start with `source`.
CostTableFile cost_table_of(const Json& json, const std::string& source);
/// The same from text; messages start with `source`.
CostTableFile parse_cost_table_file(std::string_view text, const std::string& source);

/// A table from text; messages start with `source`.
CostTable parse_cost_table(std::string_view text, const std::string& source);

}  // namespace hearth
