// Globs of users on names of tensors.
#pragma once

#include <string_view>

namespace hearth {

/// `*` matches any characters, dots too; everything else itself. On whole names.
bool glob_matches(std::string_view glob, std::string_view name);

}  // namespace hearth
