// axolotl's `datasets: [{path, type, field_*, ...}]` as files, a format and columns.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "options/config_file.h"
#include "options/problems.h"

namespace hearth {

struct ForeignDatasets {
  std::vector<std::string> files;
  std::string format;                // for --format, if all datasets with a type agree; else empty
  std::vector<std::string> columns;  // for --columns, FIELD=COLUMN
  std::string max_samples;           // for --max-samples, from `split: train[:N]`; else empty
};

/// Whether this key (with hyphens) may hold maps.
bool is_dataset_key(const std::string& name);

/// Adds a problem for each field without counterpart. `where`: place of the key; `file`: the path of
/// the configuration, for the places of its fields; empty for a flag.
ForeignDatasets translate_datasets(const ConfigEntry& entry, const std::string& where,
                                   const std::string& file, Problems& problems);

}  // namespace hearth
