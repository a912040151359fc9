// Splits texts as Python's str does.
#pragma once

#include <cstdint>
#include <string>

#include "jinja/value.h"

namespace hearth::jinja {

/// text.split and rsplit; `limit`: most splits, -1 for all.
Values split_at(const std::string& text, const std::string& separator, int64_t limit,
                bool from_right);
Values split_at_space(const std::string& text, int64_t limit, bool from_right);
/// text.splitlines.
Values split_lines(const std::string& text, bool keep_ends);

}  // namespace hearth::jinja
