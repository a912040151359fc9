// Whether a text contains a part.
#pragma once

#include <string>

namespace hearth::test {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace hearth::test
