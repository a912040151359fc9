// text.format(...).
#pragma once

#include <string>

#include "jinja/evaluator.h"

namespace hearth::jinja {

/// Supports {}, {0}, {name}, {name.attribute[item]!r:spec}, {{ and }}. TemplateError for a nested
/// spec.
std::string format_braces(Evaluator& e, const std::string& format, const Arguments& arguments);

}  // namespace hearth::jinja
