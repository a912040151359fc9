// Directories of cost tables: one file per place. The user's cache has one for each machine.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "setup/cost_table_file.h"
#include "topology/topology.h"

namespace hearth {

/// What makes tables of one machine useless on another: processor, cores, memory, and this program's
/// version. 16 hex digits.
std::string machine_identity(const Topology& topology);
/// The same for people, with the identity: "machine" in a table's file.
Json machine_json(const Topology& topology);

/// The directory of the tables of this machine below the user's cache; empty if there is no cache.
std::string cost_cache_directory(const Topology& topology);

/// The file of a place in a directory: "virtual:0" is DIR/virtual-0.json.
std::string table_path(const std::string& directory, const std::string& place);

/// The table of a place in a directory; nullopt if the directory has none. Input error if the file
/// is not a cost table.
std::optional<CostTableFile> find_table(const std::string& directory, const std::string& place);

/// A table that replaces another one in the cache, with what only the older one has: entries of a
/// type and a number of cores of which the newer one has none. So a table of one core does not cost
/// a table of all cores. "kept" of the machine lists them, with the time when they were made.
CostTableFile with_kept_entries(CostTableFile newer, const CostTableFile& older);
/// The origin of a table's entries of a type and a number of cores: of kept ones, their own.
CostTableOrigin origin_of(const CostTableOrigin& origin, Compute dtype, int64_t cores);
/// Puts the spread of a measurement (PlaceProfile::spread) beside the machine, and whether it is
/// noisy.
void set_spread(CostTableOrigin& origin, std::optional<double> spread);
/// Whether the machine was noisy when the table was measured.
bool is_noisy(const CostTableOrigin& origin);

/// "3 hours", "12 days": the age of a table by its time `made`; empty if that is no time in seconds.
std::string age_of(const CostTableOrigin& origin, double now);
/// Seconds since 1970, in UTC.
double seconds_now();

}  // namespace hearth
