// Formats: text % values and format(value, spec).
#pragma once

#include <string>

#include "jinja/value.h"

namespace hearth::jinja {

/// text % values, for the conversions d i s r f e g x o c %.
Value format_percent(const std::string& format, const Value& values);
/// format(value, spec) for the specifications of texts and numbers.
std::string format_value(const Value& value, const std::string& spec);

}  // namespace hearth::jinja
