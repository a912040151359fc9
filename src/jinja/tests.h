// The tests of templates: x is NAME.
#pragma once

#include <string_view>

#include "jinja/value.h"

namespace hearth::jinja {

using Test = bool (*)(Evaluator&, const Value& input, const Arguments& arguments);

/// The test of this name, or null.
Test find_test(std::string_view name);

}  // namespace hearth::jinja
