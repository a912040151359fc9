// Looks up the names of flags or file keys in the option table.
#pragma once

#include <string>
#include <vector>

#include "commands/arguments.h"
#include "foreign/trainers.h"
#include "options/option_table.h"

namespace hearth {

/// Texts given to one spelling of an option in one place.
struct Given {
  const Option* option = nullptr;
  std::string where;
  std::vector<std::string> texts;
  bool foreign = false;  // given under another trainer's name
  std::string key = {};  // as written, with hyphens; empty for a trainer's default
};

/// The options of one place: the flags, or the file.
struct GivenPlace {
  std::vector<Given> given;
  std::vector<std::string> notes;    // for people
  std::vector<std::string> details;  // with --verbose: keys without effect and null values
  Trainer trainer = Trainer::none;   // that the file is for
};

/// Looks up names, translates names of other trainers, and adds errors to `problems`. `dashes`:
/// prefix of names in suggestions. `file`: path of the configuration; empty for flags.
GivenPlace look_up(Command command, const std::vector<NamedValue>& named, const std::string& dashes,
                   const std::string& file, Problems& problems);
/// The keys of a configuration file, with their lines.
std::vector<NamedValue> named_in_file(const std::string& path);

/// The message for a name that the command does not accept.
std::string refusal(Command command, std::string_view name, const std::string& dashes);
/// "; the nearest is --learning-rate (--lr)", with underscores if `name` has any; else where to
/// look.
std::string suggestion(Command command, std::string_view name, const std::string& dashes);

}  // namespace hearth
