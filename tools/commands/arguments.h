// The words behind a command, split into options and operands.
#pragma once

#include <string>
#include <vector>

#include "options/config_file.h"
#include "options/options.h"
#include "options/problems.h"

namespace hearth {

/// An option as it was given in one place, before its name is looked up.
struct NamedValue {
  ConfigEntry entry;  // key, texts or maps
  std::string where;  // "--lr", "run.yaml:3: lr"
};

struct Arguments {
  std::vector<NamedValue> named;
  std::vector<std::string> operands;
  std::vector<std::string> unknown;  // names, with their dashes
};

/// Knows the options of the command, those of other trainers where it takes a configuration, and
/// those of later versions, so that their values are not taken for operands.
Arguments split_arguments(Command command, std::vector<std::string> words, Problems& problems);

}  // namespace hearth
