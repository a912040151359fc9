// Paths as text.
#pragma once

#include <string>

namespace hearth {

/// "/" stays.
inline std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace hearth
