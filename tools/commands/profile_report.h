// What `profile` says of the tables that it measured.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "setup/measured_tables.h"

namespace hearth {

/// A measured table as it is written, and where it was written to.
struct ProfiledTable {
  MeasuredTable measured;
  Json document;  // of the file
  std::vector<std::string> files;
};

/// {"tables": {PLACE: the file's document}, "files": [...], "spread": {PLACE: share}, "noisy",
/// "seconds"}.
Json profile_json(std::span<const ProfiledTable> tables, double seconds);

/// Tables for people: rates of each kind, links, break-even counts between places.
std::string profile_text(std::span<const ProfiledTable> tables, double seconds);

/// The page with curves.
std::string profile_page(std::span<const ProfiledTable> tables, const std::string& machine);

}  // namespace hearth
