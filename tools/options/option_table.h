// The one table of all options: flags, `--help`, YAML keys and the recorded configuration come from
// it and from nowhere else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "options/option_values.h"
#include "options/options.h"

namespace hearth {

/// A set of commands, one bit each.
class CommandSet {
 public:
  constexpr CommandSet() = default;
  constexpr CommandSet(std::initializer_list<Command> commands) {
    for (const Command command : commands) bits_ |= 1u << static_cast<unsigned>(command);
  }
  constexpr bool contains(Command command) const {
    return (bits_ >> static_cast<unsigned>(command) & 1u) != 0;
  }

 private:
  uint32_t bits_ = 0;
};

/// What an option means to some commands, if that is not what it means to `train`.
struct HelpFor {
  CommandSet commands;
  std::string help;
  std::string default_text = {};  // empty: that of the option
  std::string placeholder = {};   // empty: that of the value
};

/// Another option, as one option needs or excludes it.
struct Relation {
  std::string option;
  std::string value = {};  // empty: any but the default
  std::string why = {};    // for people; empty: nothing to say
};

struct Option {
  std::string name;   // with hyphens; underscores are accepted everywhere
  std::string group;  // headline in the help
  CommandSet commands;
  CommandSet idle = {};   // also accept it, without effect, as their help says
  CommandSet later = {};  // will take it: not in this version
  OptionValue value;
  std::string unit = {};
  std::string help = {};
  std::string default_text = {};       // if the default is a rule; else the value's own is shown
  std::vector<HelpFor> help_for = {};  // in place of `help`
  // Hold if the option has another value than its default, among the options of the command.
  std::vector<Relation> needs = {};     // one of these
  std::vector<Relation> excludes = {};  // all of these
  bool hidden = false;      // accepted, but absent from --help: it has no effect in this version
  bool may_change = false;  // on resume
  std::vector<std::string> aliases = {};  // names in TRL, axolotl and LLaMA-Factory, with hyphens

  bool taken_by(Command command) const {
    return commands.contains(command) || idle.contains(command);
  }
  /// What the help of a command says of it.
  HelpFor help_of(Command command) const;
};

/// In the order of the help.
const std::vector<Option>& option_table();

}  // namespace hearth
