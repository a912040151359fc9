// tojson as transformers configures it: json.dumps, no HTML escapes, members in insertion order.
#pragma once

#include <optional>
#include <string>

#include "jinja/value.h"

namespace hearth::jinja {

struct JsonStyle {
  bool ascii = false;                 // writes \u escapes for non-ASCII characters
  std::optional<std::string> indent;  // per level; absent: all on one line
  std::string between = ", ";         // between members
  std::string colon = ": ";
  bool sorted = false;
};
std::string to_json(const Value& value, const JsonStyle& style);

}  // namespace hearth::jinja
