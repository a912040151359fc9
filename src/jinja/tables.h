// The filters and tests that templates may name.
#pragma once

#include <string_view>

#include "jinja/value.h"

namespace hearth::jinja {

using Filter = Value (*)(Evaluator&, const Value& input, const Arguments& arguments);
using Test = bool (*)(Evaluator&, const Value& input, const Arguments& arguments);

/// By name; null for none.
Filter find_filter(std::string_view name);
Test find_test(std::string_view name);

/// What find_filter looks through, by theme.
struct NamedFilter {
  std::string_view name;
  Filter filter;
};

}  // namespace hearth::jinja
