// Differences between utf8proc and the official library, whose components other than regular
// expressions use tables of Unicode 8 to 11.
#pragma once

#include <cstdint>

namespace hearth {

/// Characters that are punctuation, or marks, in Unicode 14 but not in the library.
bool punctuation_unknown_to_library(uint32_t code);
bool mark_unknown_to_library(uint32_t code);
/// Characters that Unicode 14 decomposes and the library does not.
bool decomposition_unknown_to_library(uint32_t code, bool compatible);

}  // namespace hearth
