// Values as text: Python's str and repr.
#pragma once

#include <string>
#include <string_view>

#include "jinja/value.h"

namespace hearth::jinja {

/// str(value), as {{ }} prints it; empty for an undefined value.
std::string to_text(const Value& value);
/// repr(value), as in the members of a printed list.
std::string to_repr(const Value& value);
/// The shortest digits that read back to the same double, laid out as Python does: 1.0, 1e-05, nan.
std::string float_text(double value);

/// Escapes & < > ' " for HTML (the filter `escape`).
std::string escaped(std::string_view text);

}  // namespace hearth::jinja
