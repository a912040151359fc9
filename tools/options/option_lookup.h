// Finds options in the option table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "options/option_table.h"

namespace hearth {

/// Finds an option by name or alias, with hyphens or underscores; nullptr if there is none.
const Option* find_option(std::string_view spelling);
/// The same for a command: if two options have the name, the one that the command takes.
const Option* find_option(std::string_view spelling, Command command);
/// Every option of `train` with its value, in table order (TrainConfig::recorded).
std::vector<TrainConfig::Recorded> recorded_options(const Options& options);

/// Replaces underscores by hyphens.
std::string with_hyphens(std::string_view name);

}  // namespace hearth
