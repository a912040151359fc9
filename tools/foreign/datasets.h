// axolotl's `datasets: [{path, type, ...}]` as files and a format.
#pragma once

#include <string>
#include <vector>

#include "options/config_file.h"
#include "options/problems.h"

namespace hearth {

struct ForeignDatasets {
  std::vector<std::string> files;
  std::string format;  // for --format, if all datasets with a type agree; else empty
};

/// Whether this key (with hyphens) may hold maps.
bool is_dataset_key(const std::string& name);

/// Adds a problem for each field without counterpart. `where`: place of the key.
ForeignDatasets translate_datasets(const ConfigEntry& entry, const std::string& where,
                                   Problems& problems);

}  // namespace hearth
