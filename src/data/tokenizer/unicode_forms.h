// Unicode normalization forms and character classes, from the tables of utf8proc (Unicode 14).
#pragma once

#include <cstdint>
#include <string>

#include "data/tokenizer/aligned_text.h"

namespace hearth {

enum class UnicodeForm { nfc, nfd, nfkc, nfkd };

/// A changed cluster (a character and its marks) maps back as a whole. Linear time and memory,
/// except for sorting runs of combining marks.
void normalize(AlignedText& text, UnicodeForm form);

// Character classes of the official library (library_tables.h).
bool is_space(uint32_t code);        // White_Space
bool is_word(uint32_t code);         // \w: alphabetic, marks, decimal digits, connectors, joiners
bool is_numeric(uint32_t code);      // Nd, Nl, No
bool is_punctuation(uint32_t code);  // P*, and the ASCII symbols
bool is_accent(uint32_t code);       // M*

/// Appends the lower case of a character, which may be two characters.
void append_lower(uint32_t code, std::string& text);
void append_utf8(uint32_t code, std::string& text);

}  // namespace hearth
