// Values as text: Python's str and repr, JSON as transformers' tojson writes it, and formats.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "jinja/value.h"

namespace hearth::jinja {

/// str(value), what {{ }} prints; nothing for an undefined value.
std::string to_text(const Value& value);
/// repr(value), as the members of a printed list stand.
std::string to_repr(const Value& value);
/// The shortest digits that read back to the same double, laid out as Python does: 1.0, 1e-05, nan.
std::string float_text(double value);

struct JsonStyle {
  bool ascii = false;                 // \u escapes beyond ASCII
  std::optional<std::string> indent;  // of one level; absent: one line
  std::string between = ", ";         // members
  std::string colon = ": ";
  bool sorted = false;
};
std::string to_json(const Value& value, const JsonStyle& style);

/// HTML's & < > ' " as entities (the filter escape).
std::string escaped(std::string_view text);

/// text % values, for the conversions d i s r f e g x o c %.
Value format_percent(const std::string& format, const Value& values);
/// format(value, spec) for the specifications of texts and numbers.
std::string format_value(const Value& value, const std::string& spec);

}  // namespace hearth::jinja
