// Numbers of things in lines for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth {

/// "1 row", "12 rows".
inline std::string counted(int64_t n, std::string_view noun) {
  return std::to_string(n).append(" ").append(noun).append(n == 1 ? "" : "s");
}

}  // namespace hearth
