// Where the official library knows an older Unicode than utf8proc: its components that are not regular
// expressions take their classes from tables of Unicode 8 to 11.
#pragma once

#include <cstdint>

namespace hearth {

/// Characters that are punctuation, or marks, in Unicode 14, but not to the library.
bool punctuation_unknown_to_library(uint32_t code);
bool mark_unknown_to_library(uint32_t code);
/// Characters that the library leaves as they are where Unicode 14 decomposes them.
bool decomposition_unknown_to_library(uint32_t code, bool compatible);

}  // namespace hearth
