// unsloth's own program writes its keys in sections: `training: {...}`, `lora: {...}`.
#pragma once

#include <vector>

#include "options/config_file.h"

namespace hearth {

/// The keys of such a file with the sections taken away, each with its line. Any other file: as it
/// is.
std::vector<ConfigEntry> without_sections(std::vector<ConfigEntry> entries);

}  // namespace hearth
