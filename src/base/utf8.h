// The single definition of valid UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth {

/// One decoded character: code point and length in bytes. Length 0: no valid sequence starts here.
/// Overlong forms, surrogates and values above U+10FFFF are invalid.
struct Utf8Char {
  uint32_t code = 0;
  size_t length = 0;
};

/// The character at the start of the text; length 0 if the text is empty.
Utf8Char decode_utf8(std::string_view text);

/// What some editors put before a text.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// Offset of the first byte that is not part of valid UTF-8; npos if there is none.
size_t find_invalid_utf8(std::string_view text);

/// The text with every invalid byte replaced by U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

}  // namespace hearth
