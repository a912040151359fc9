// A configuration of another trainer with hearth's names.
#pragma once

#include <string>

#include "commands/command_line.h"

namespace hearth {

/// The YAML of all options that the file of `line` or its trainer sets, in the order of the table. As
/// a configuration of its own it gives the same options. Flags of `line` are left out.
std::string migrated_yaml(const CommandLine& line);

}  // namespace hearth
