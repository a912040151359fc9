// Splits the words after a command into options and operands.
#pragma once

#include <string>
#include <vector>

#include "options/config_file.h"
#include "options/options.h"
#include "options/problems.h"

namespace hearth {

/// An option as the user gave it in one place, before its name is looked up.
struct NamedValue {
  ConfigEntry entry;  // key, and texts or maps
  std::string where;  // "--lr", "run.yaml:3: lr"
};

struct Arguments {
  std::vector<NamedValue> named;
  std::vector<std::string> operands;
  std::vector<std::string> unknown;  // names, with dashes
};

/// Knows the options of the command, of later versions, and, if the command takes a configuration,
/// of other trainers. So it does not take their values for operands.
Arguments split_arguments(Command command, std::vector<std::string> words, Problems& problems);

}  // namespace hearth
