// The byte-level alphabet of GPT-2: each byte as a printable character. Bytes that Latin-1 prints
// stand for themselves, the others, in order, for U+0100 and the characters behind it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth {

/// The character that stands for a byte, as UTF-8.
std::string alphabet_character(uint8_t byte);

/// The bytes that a text in the alphabet stands for; nullopt when it has a character outside.
std::optional<std::string> bytes_of_alphabet(std::string_view text);

}  // namespace hearth
