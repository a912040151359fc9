// Values as text: Python's str and repr.
#pragma once

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

/// HTML's & < > ' " as entities (the filter escape).
std::string escaped(std::string_view text);

}  // namespace hearth::jinja
