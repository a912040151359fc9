// Methods of texts, as in Python's str.
#pragma once

#include <string_view>

#include "jinja/methods.h"

namespace hearth::jinja {

/// Null if str has no such method; TemplateError if it has but the method is not supported.
Method find_string_method(std::string_view name);

}  // namespace hearth::jinja
