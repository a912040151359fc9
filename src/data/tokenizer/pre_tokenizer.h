// Cutting a text into words: the pre-tokenizer of tokenizer.json.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "data/tokenizer/regex.h"

namespace hearth {

/// Splits with regexes, one after the other, each on the pieces of the one before; what a regex
/// matches and what lies between matches become pieces. Then ByteLevel, whose own regex is one of
/// the splits here.
class PreTokenizer {
 public:
  /// From the object `pre_tokenizer`; `source` names the file in messages.
  PreTokenizer(const Json& description, const std::string& source);

  /// Calls `word(begin, piece)` for the words of a text in order; begin counts from the text's.
  template <class F>
  void split(std::string_view text, const F& word) const {
    split_from(0, text, 0, word);
  }

 private:
  void add_split(const Json& description, const std::string& where);
  void add_byte_level(const Json& description, const std::string& where);

  template <class F>
  void split_from(size_t level, std::string_view text, uint32_t offset, const F& word) const {
    if (level == splits_.size()) {
      if (!text.empty()) word(offset, text);
      return;
    }
    uint32_t done = 0;
    const auto piece_until = [&](uint32_t end) {
      if (end > done) split_from(level + 1, text.substr(done, end - done), offset + done, word);
      done = end;
    };
    uint32_t start = 0;
    while (start <= text.size()) {
      const auto match = splits_[level].find(text, start);
      if (!match) break;
      piece_until(match->begin);
      piece_until(match->end);
      // An empty match cuts at its place; the next one is looked for behind the next character.
      start = match->end > match->begin ? match->end : next_character(text, match->end);
    }
    piece_until(static_cast<uint32_t>(text.size()));
  }

  static uint32_t next_character(std::string_view text, uint32_t at) {
    do ++at;
    while (at < text.size() && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80);
    return at;
  }

  std::vector<Regex> splits_;
};

}  // namespace hearth
