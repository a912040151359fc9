// What the contract of the command line names and this version does not have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hearth {

/// What the contract of the command line names and this version does not have: exit 2, "not in this
/// version". An entry leaves here when its option or command comes.
struct LaterOption {
  std::string name;
  bool flag = false;  // takes no value
  std::vector<std::string> aliases = {};
};
const std::vector<LaterOption>& later_options();
const LaterOption* find_later_option(std::string_view spelling);
bool is_later_command(std::string_view name);

}  // namespace hearth
