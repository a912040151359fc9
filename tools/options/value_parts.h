// Helpers of option_values.cpp and special_values.cpp. Private to them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "options/option_values.h"

namespace hearth {

using Problem = std::optional<std::string>;

inline std::string unexpected(const std::string& expected, std::string_view found) {
  return "expected " + expected + ", found " + quoted(found);
}

/// Wraps the setter of a value that takes exactly one text.
template <class Set>
auto single(Set set) {
  return [set](Options& options, const std::vector<std::string>& texts) -> Problem {
    if (texts.size() != 1) return "expected one value, found " + std::to_string(texts.size());
    return set(options, texts[0]);
  };
}

inline std::string yaml_text(const std::string& text) {
  return text.empty() ? "null" : Json(text).dump();  // a JSON string is a YAML string
}

inline std::string yaml_list(const std::vector<std::string>& texts) {
  JsonArray items;
  for (const std::string& text : texts) items.emplace_back(text);
  return Json(std::move(items)).dump();
}

}  // namespace hearth
