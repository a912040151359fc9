// User globs on tensor names.
#pragma once

#include <string_view>

namespace hearth {

/// Matches the whole name. `*` matches any characters, dots included; other characters match
/// themselves.
bool glob_matches(std::string_view glob, std::string_view name);

}  // namespace hearth
