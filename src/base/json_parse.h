// parse_json (base/json.h) for a document inside a larger text, such as a row of a data file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"

namespace hearth {

/// parse_json for a text that begins in line `line` of `file`. Messages start with FILE:LINE, the
/// line of the error. Columns count from the start of the text or of a later line.
Json parse_json_at(std::string_view text, const std::string& file, int64_t line,
                   JsonLimits limits = {});

}  // namespace hearth
