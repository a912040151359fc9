// Texts as Python sees them: sequences of code points, with Python's white space and letter cases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::jinja {

/// White space as str.isspace() and strip() define it.
bool is_space(uint32_t code);
/// Bytes of white space at the start or the end of a text.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);

std::string_view first_character(std::string_view text);
/// Appends a code point; false, and appends nothing, if it is not a valid one.
bool append_code(std::string& text, uint32_t code);

std::vector<uint32_t> codes_of(std::string_view text);
std::string text_of(const std::vector<uint32_t>& codes);
size_t count_codes(std::string_view text);
/// The byte offset of a character; text.size() if there is no such character.
size_t offset_of(std::string_view text, size_t character);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_title(std::string_view text);  // str.title
std::string capitalize(std::string_view text);
std::string swap_case(std::string_view text);

/// The predicates of str: "isalpha", "isdigit", "isdecimal", "isnumeric", "isalnum", "isspace",
/// "isupper", "islower", "istitle", "isascii".
bool has_property(std::string_view text, std::string_view name);

bool is_word(uint32_t code);  // \w of regular expressions
bool is_printable(uint32_t code);

}  // namespace hearth::jinja
