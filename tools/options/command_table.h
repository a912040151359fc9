// The table of commands.
#pragma once

#include <string>
#include <vector>

#include "options/options.h"

namespace hearth {

/// A command as the help shows it.
struct CommandEntry {
  Command command;
  std::string name;
  std::string operand;  // "DIR", "[CONFIG.yaml]", "" for none
  std::string summary;
  std::vector<std::string> required;     // options
  std::vector<std::string> one_of = {};  // options of which exactly one is given
};
const std::vector<CommandEntry>& command_table();
const CommandEntry& entry_of(Command command);

}  // namespace hearth
