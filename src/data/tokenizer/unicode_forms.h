// Unicode normalization forms, and what a character is, by the tables of utf8proc (Unicode 14).
#pragma once

#include <cstdint>
#include <string>

#include "data/tokenizer/aligned_text.h"

namespace hearth {

enum class UnicodeForm { nfc, nfd, nfkc, nfkd };

/// Clusters (a character and the marks behind it) that the form changes map back as a whole. Time
/// and memory linear in the text, but for sorting runs of combining marks.
void normalize(AlignedText& text, UnicodeForm form);

// Classes of characters, as the official library has them (library_tables.h).
bool is_space(uint32_t code);        // White_Space
bool is_word(uint32_t code);         // \w: alphabetic, marks, decimal digits, connectors, joiners
bool is_numeric(uint32_t code);      // Nd, Nl, No
bool is_punctuation(uint32_t code);  // P*, and the ASCII symbols
bool is_accent(uint32_t code);       // M*

/// Lower case of one character, which may be two.
void append_lower(uint32_t code, std::string& text);
void append_utf8(uint32_t code, std::string& text);

}  // namespace hearth
