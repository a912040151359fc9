// From the arguments of the program, and a configuration file if one is named, to Options.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "options/option_table.h"

namespace hearth {

struct CommandLine {
  enum class Action { run, help, version };
  Action action = Action::run;
  std::optional<Command> command;  // none: help of the program
  Options options;                 // of `run`, with `recorded` filled for train and plan
  std::vector<std::string> notes;  // for people: what the configuration says to no effect
};

/// `arguments`: without the program's name. All problems are reported in one usage error; a file
/// that is no configuration at all is an input error.
CommandLine parse_command_line(const std::vector<std::string>& arguments);

}  // namespace hearth
