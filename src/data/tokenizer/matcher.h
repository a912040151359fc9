// The matches of Split and Replace in a text: a regex, a string, or a class of characters.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/json.h"
#include "base/utf8.h"
#include "data/tokenizer/regex.h"

namespace hearth {

class Matcher {
 public:
  using CharClass = bool (*)(uint32_t code);

  /// Reads `{"String": text}` or `{"Regex": pattern}`; `where` is its path in messages.
  Matcher(const Json& pattern, const std::string& where);
  explicit Matcher(Regex regex) : kind_(std::move(regex)) {}
  explicit Matcher(std::string text) : kind_(std::move(text)) {}
  explicit Matcher(CharClass is_match) : kind_(is_match) {}  // each character is a match

  /// Calls `match(TextSpan)` for the matches in order. Like Rust's iterators, skips an empty match
  /// right after another match. An empty text has no match.
  template <class F>
  void for_each(std::string_view text, const F& match) const {
    if (text.empty()) return;
    if (const Regex* regex = std::get_if<Regex>(&kind_)) {
      for_each_of(*regex, text, match);
    } else if (const std::string* wanted = std::get_if<std::string>(&kind_)) {
      for (size_t at = text.find(*wanted); at != std::string_view::npos;
           at = text.find(*wanted, at + wanted->size())) {
        match(TextSpan{static_cast<uint32_t>(at), static_cast<uint32_t>(at + wanted->size())});
      }
    } else {
      const CharClass is_match = std::get<CharClass>(kind_);
      Utf8Char c;
      for (uint32_t at = 0; at < text.size(); at += static_cast<uint32_t>(c.length)) {
        c = decode_utf8(text.substr(at));
        if (is_match(c.code)) match(TextSpan{at, at + static_cast<uint32_t>(c.length)});
      }
    }
  }

 private:
  template <class F>
  static void for_each_of(const Regex& regex, std::string_view text, const F& match) {
    uint32_t start = 0;
    uint32_t last_end = UINT32_MAX;
    while (start <= text.size()) {
      const auto found = regex.find(text, start);
      if (!found) return;
      if (found->begin == found->end && found->end == last_end) {
        start = found->end + step(text, found->end);
        continue;
      }
      match(*found);
      start = last_end = found->end;
    }
  }
  static uint32_t step(std::string_view text, uint32_t at) {
    return at == text.size() ? 1 : static_cast<uint32_t>(decode_utf8(text.substr(at)).length);
  }

  std::variant<Regex, std::string, CharClass> kind_;
};

/// How matches and the text between them become pieces (names of tokenizer.json).
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

struct SplitRule {
  Matcher matcher;
  SplitBehavior behavior;
  bool invert = false;  // the text between matches counts as the matches
};

/// Appends the spans of the pieces of a text, moved by `offset`. No piece is empty.
void split(std::string_view text, const SplitRule& rule, uint32_t offset,
           std::vector<TextSpan>& pieces);

SplitBehavior read_behavior(const Json& value, const std::string& where);

}  // namespace hearth
