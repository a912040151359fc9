// Whole numbers as options and messages write them: "2,4".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth {

inline std::string numbers_text(const std::vector<int32_t>& numbers) {
  std::string text;
  for (const int32_t number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

}  // namespace hearth
