// The one list of what the contract of the command line has and this version has not.
#include <algorithm>

#include "options/option_table.h"

namespace hearth {

const std::vector<LaterOption>& later_options() {
  static const std::vector<LaterOption> options{
      {.name = "policy"},
      {.name = "topology"},
  };
  return options;
}

const LaterOption* find_later_option(std::string_view spelling) {
  const std::string name = with_hyphens(spelling);
  for (const LaterOption& option : later_options()) {
    const auto& aliases = option.aliases;
    if (option.name == name || std::find(aliases.begin(), aliases.end(), name) != aliases.end()) {
      return &option;
    }
  }
  return nullptr;
}

bool is_later_command(std::string_view name) {
  return name == "profile" || name == "doctor" || name == "simulate";
}

}  // namespace hearth
