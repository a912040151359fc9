// Options of the command-line contract that this version does not have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hearth {

/// An option for a later version. Using it is an error: exit 2, "not in this version". Remove the
/// entry when the option arrives.
struct LaterOption {
  std::string name;
  bool flag = false;  // takes no value
};
const std::vector<LaterOption>& later_options();
const LaterOption* find_later_option(std::string_view spelling);

}  // namespace hearth
