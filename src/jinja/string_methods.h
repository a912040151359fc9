// Methods of texts: those of Python's str.
#pragma once

#include <string_view>

#include "jinja/objects.h"

namespace hearth::jinja {

/// Null for what str has not; TemplateError for what it has and is not supported.
Method find_string_method(std::string_view name);

/// text.split and rsplit (split.cpp): `limit` -1 for all.
Values split_at(const std::string& text, const std::string& separator, int64_t limit,
                bool from_right);
Values split_at_space(const std::string& text, int64_t limit, bool from_right);
Values split_lines(const std::string& text, bool keep_ends);
/// text.format(...).
std::string format_braces(Evaluator& e, const std::string& format, const Arguments& arguments);

}  // namespace hearth::jinja
