// The table of commands.
#pragma once

#include <string>
#include <vector>

#include "options/options.h"

namespace hearth {

/// A command in the help.
struct CommandEntry {
  Command command;
  std::string name;
  std::string operand;  // "DIR", "[CONFIG.yaml]", "" for none
  std::string summary;
  std::vector<std::string> required;  // required options
};
const std::vector<CommandEntry>& command_table();
const CommandEntry& entry_of(Command command);

}  // namespace hearth
