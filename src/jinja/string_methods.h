// Methods of texts: those of Python's str.
#pragma once

#include <string_view>

#include "jinja/methods.h"

namespace hearth::jinja {

/// Null for what str has not; TemplateError for what it has and is not supported.
Method find_string_method(std::string_view name);

}  // namespace hearth::jinja
