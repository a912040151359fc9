// Reads cost tables from files (format: docs/cost-tables.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plan/cost_table.h"

namespace hearth {

inline constexpr uint64_t kMaxCostTableBytes = uint64_t{16} << 20;

/// Reads a table from a regular file of at most 16 MiB. Input error, naming the file, the entry and
/// the field, for anything that the format does not allow.
CostTable read_cost_table(const std::string& path);

/// The same for text; messages start with `source`.
CostTable parse_cost_table(std::string_view text, const std::string& source);

}  // namespace hearth
