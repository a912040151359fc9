// The text of --help, from the option table.
#pragma once

#include <string>

#include "options/options.h"

namespace hearth {

/// `hearth --help`, `hearth COMMAND --help`.
std::string program_help();
/// Every option of train with its names in other trainers.
std::string aliases_help();
std::string command_help(Command command);

}  // namespace hearth
