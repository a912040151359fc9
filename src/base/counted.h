// Counts with a noun, for messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth {

/// "1 row", "0.25 rows". `number` is the printed number.
inline std::string counted(std::string_view number, std::string_view noun) {
  return std::string(number).append(" ").append(noun).append(number == "1" ? "" : "s");
}
/// "1 row", "12 rows".
inline std::string counted(int64_t n, std::string_view noun) {
  return counted(std::to_string(n), noun);
}

}  // namespace hearth
