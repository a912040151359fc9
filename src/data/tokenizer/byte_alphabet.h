// The byte-level alphabet of GPT-2: one printable character per byte. Printable Latin-1 bytes map
// to themselves; the others, in order, to U+0100 and up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth {

/// The character that stands for a byte, as UTF-8.
std::string alphabet_character(uint8_t byte);

/// Decodes a text in the alphabet to bytes; nullopt if it contains another character.
std::optional<std::string> bytes_of_alphabet(std::string_view text);

}  // namespace hearth
