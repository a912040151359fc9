// tojson as transformers sets it up: json.dumps without escapes for HTML, members in their order.
#pragma once

#include <optional>
#include <string>

#include "jinja/value.h"

namespace hearth::jinja {

struct JsonStyle {
  bool ascii = false;                 // \u escapes beyond ASCII
  std::optional<std::string> indent;  // of one level; absent: one line
  std::string between = ", ";         // members
  std::string colon = ": ";
  bool sorted = false;
};
std::string to_json(const Value& value, const JsonStyle& style);

}  // namespace hearth::jinja
