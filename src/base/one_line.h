// Text on one line.
#pragma once

#include <string>
#include <string_view>

namespace hearth {

/// The text with line breaks and tabs written as
/// , \r and \t.
inline std::string with_visible_breaks(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == '\t') {
      shown += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else {
      shown += c;
    }
  }
  return shown;
}

}  // namespace hearth
