// Parses the program's arguments, and a configuration file if one is named, into Options.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "commands/option_place.h"
#include "options/option_table.h"

namespace hearth {

struct CommandLine {
  enum class Action { run, help, aliases, version };
  Action action = Action::run;
  std::optional<Command> command;    // none: the program's help
  Options options;                   // for `run`; `recorded` is filled for train and plan
  std::vector<std::string> notes;    // for people
  std::vector<std::string> details;  // with --verbose: settings without effect
  OptionPlaces places;
};

/// `arguments`: without the program's name. Reports all problems in one usage error. Input error
/// for a file that is not a configuration.
CommandLine parse_command_line(const std::vector<std::string>& arguments);

}  // namespace hearth
