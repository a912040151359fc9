// The table of all options, the only source of flags, `--help`, YAML keys and the recorded
// configuration.
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

/// The help of an option for commands where it means something else than for `train`.
struct HelpFor {
  CommandSet commands;
  std::string help;
  std::string default_text = {};  // empty: the option's
  std::string placeholder = {};   // empty: the value's
};

/// Another option that an option needs or excludes.
struct Relation {
  std::string option;
  std::string value = {};  // empty: any value but the default
  std::string why = {};    // reason, for people; may be empty
};

struct Option {
  std::string name;   // with hyphens; underscores are accepted everywhere
  std::string group;  // headline in the help
  CommandSet commands;
  CommandSet idle = {};   // commands that accept it without effect
  CommandSet later = {};  // commands that take it in a later version
  OptionValue value;
  std::string unit = {};
  std::string help = {};
  std::string default_text = {};       // if the default is a rule; else help shows the value
  std::vector<HelpFor> help_for = {};  // replaces `help`
  // Apply if the option differs from its default. Only options of the same command count.
  std::vector<Relation> needs = {};     // at least one of these
  std::vector<Relation> excludes = {};  // none of these
  bool hidden = false;                  // accepted, but not in --help, because it has no effect yet
  bool may_change = false;              // a resume may change it
  bool of_rank = false;                 // ranks of one run may have different values
  std::vector<std::string> aliases = {};  // names in TRL, axolotl and LLaMA-Factory, with hyphens

  bool taken_by(Command command) const {
    return commands.contains(command) || idle.contains(command);
  }
  /// The help of the option for a command.
  HelpFor help_of(Command command) const;
};

/// In the order of the help.
const std::vector<Option>& option_table();

}  // namespace hearth
