// Where this user's caches are.
#pragma once

#include <string>

namespace hearth {

/// $XDG_CACHE_HOME/hearth, else $HOME/.cache/hearth; empty if neither variable has an absolute path.
std::string user_cache_directory();

}  // namespace hearth
