// The one rule of what valid UTF-8 is, for text that is checked or shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth {

/// One decoded character: its code point and its length in bytes. Length 0 means that no valid
/// sequence starts here (overlong forms, surrogates and values above U+10FFFF are not valid).
struct Utf8Char {
  uint32_t code = 0;
  size_t length = 0;
};

/// The character at the start of the text; length 0 for an empty text as well.
Utf8Char decode_utf8(std::string_view text);

/// Offset of the first byte that is not part of valid UTF-8, npos when all of it is valid.
size_t find_invalid_utf8(std::string_view text);

/// The text with every invalid byte replaced by U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

}  // namespace hearth
