// From names and texts, in flags or in a file, to options with their texts.
#pragma once

#include <string>
#include <vector>

#include "commands/arguments.h"
#include "options/option_table.h"

namespace hearth {

/// Texts given to one spelling of an option in one place.
struct Given {
  const Option* option = nullptr;
  std::string where;
  std::vector<std::string> texts;
  bool foreign = false;  // under another trainer's name
};

/// What one place (the flags, or the file) comes to.
struct GivenPlace {
  std::vector<Given> given;
  std::vector<std::string> notes;  // keys without effect, and null
};

/// Looks names up, translates those of other trainers, and adds what is wrong with them to
/// `problems`. `dashes` stands before names in suggestions.
GivenPlace look_up(Command command, const std::vector<NamedValue>& named, const std::string& dashes,
                   Problems& problems);
/// The keys of a configuration file, with their places.
std::vector<NamedValue> named_in_file(const std::string& path);

/// What to say about a name that the command does not take.
std::string refusal(Command command, std::string_view name, const std::string& dashes);
/// "; the nearest is --learning-rate (--lr)", with underscores if `name` has some; or where to look.
std::string suggestion(Command command, std::string_view name, const std::string& dashes);

}  // namespace hearth
