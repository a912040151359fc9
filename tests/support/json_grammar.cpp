#include "support/json_grammar.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>

namespace hearth::test {
namespace {

constexpr int kDepth = 64;
constexpr size_t kIntegerDigits = 4300;

void append_code(uint32_t code, std::string& to) {
  const auto tail = [&](int shift) { to += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    to += static_cast<char>(code);
  } else if (code < 0x800) {
    to += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    to += static_cast<char>(0xe0 | code >> 12);
    tail(6), tail(0);
  } else {
    to += static_cast<char>(0xf0 | code >> 18);
    tail(12), tail(6), tail(0);
  }
}

// One character of UTF-8 at `at`, by table 3-7 of the Unicode standard; its length, or 0.
size_t utf8_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const auto within = [&](size_t i, unsigned low, unsigned high) {
    return byte(i) >= low && byte(i) <= high;
  };
  const auto tail = [&](size_t i) { return within(i, 0x80, 0xbf); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return tail(1) ? 2 : 0;
  if (first == 0xe0) return within(1, 0xa0, 0xbf) && tail(2) ? 3 : 0;
  if (first == 0xed) return within(1, 0x80, 0x9f) && tail(2) ? 3 : 0;
  if (first >= 0xe1 && first <= 0xef) return tail(1) && tail(2) ? 3 : 0;
  if (first == 0xf0) return within(1, 0x90, 0xbf) && tail(2) && tail(3) ? 4 : 0;
  if (first >= 0xf1 && first <= 0xf3) return tail(1) && tail(2) && tail(3) ? 4 : 0;
  if (first == 0xf4) return within(1, 0x80, 0x8f) && tail(2) && tail(3) ? 4 : 0;
  return 0;
}

class Grammar {
 public:
  explicit Grammar(std::string_view text) : text_(text) {}

  bool document() {
    space();
    if (!value(0)) return false;
    space();
    return at_ == text_.size();
  }

 private:
  // -1 at the end.
  int next() const { return at_ < text_.size() ? static_cast<unsigned char>(text_[at_]) : -1; }
  bool take(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view letters) {
    if (text_.substr(at_, letters.size()) != letters) return false;
    at_ += letters.size();
    return true;
  }
  void space() {
    while (next() == ' ' || next() == '\t' || next() == '\n' || next() == '\r') ++at_;
  }
  size_t digits() {
    const size_t begin = at_;
    while (next() >= '0' && next() <= '9') ++at_;
    return at_ - begin;
  }

  bool value(int depth) {
    switch (next()) {
      case '{': return depth < kDepth && object(depth + 1);
      case '[': return depth < kDepth && array(depth + 1);
      case '"': return string().has_value();
      case 't': return word("true");
      case 'f': return word("false");
      case 'n': return word("null");
      default: return number();
    }
  }

  bool object(int depth) {
    ++at_;
    std::set<std::string> keys;
    space();
    if (take('}')) return true;
    do {
      space();
      const auto key = string();
      if (!key || !keys.insert(*key).second) return false;
      space();
      if (!take(':')) return false;
      space();
      if (!value(depth)) return false;
      space();
    } while (take(','));
    return take('}');
  }

  bool array(int depth) {
    ++at_;
    space();
    if (take(']')) return true;
    do {
      space();
      if (!value(depth)) return false;
      space();
    } while (take(','));
    return take(']');
  }

  bool number() {
    const size_t begin = at_;
    take('-');
    const size_t first = at_;
    if (!take('0') && digits() == 0) return false;
    const std::string_view integer = text_.substr(first, at_ - first);
    bool whole = true;
    if (take('.')) {
      whole = false;
      if (digits() == 0) return false;
    }
    if (next() == 'e' || next() == 'E') {
      whole = false;
      ++at_;
      if (!take('+')) take('-');
      if (digits() == 0) return false;
    }
    if (whole) return integer.size() <= kIntegerDigits;
    return std::isfinite(
        std::strtod(std::string(text_.substr(begin, at_ - begin)).c_str(), nullptr));
  }

  std::optional<uint32_t> four_digits() {
    uint32_t code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const int c = next();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return std::nullopt;
      code = code * 16 + static_cast<uint32_t>(digit);
    }
    return code;
  }

  bool escape(std::string& to) {
    constexpr std::string_view kLetters = "\"\\/bfnrt", kMeaning = "\"\\/\b\f\n\r\t";
    if (take('u')) {
      auto code = four_digits();
      if (!code || (*code >= 0xdc00 && *code < 0xe000)) return false;
      if (*code >= 0xd800 && *code < 0xdc00) {
        if (!word("\\u")) return false;
        const auto low = four_digits();
        if (!low || *low < 0xdc00 || *low >= 0xe000) return false;
        code = 0x10000 + ((*code - 0xd800) << 10) + (*low - 0xdc00);
      }
      append_code(*code, to);
      return true;
    }
    const size_t which = next() < 0 ? kLetters.npos : kLetters.find(text_[at_]);
    if (which == kLetters.npos) return false;
    to += kMeaning[which];
    ++at_;
    return true;
  }

  std::optional<std::string> string() {
    if (!take('"')) return std::nullopt;
    std::string result;
    while (!take('"')) {
      if (next() < 0x20) return std::nullopt;  // or the end
      if (take('\\')) {
        if (!escape(result)) return std::nullopt;
        continue;
      }
      const size_t length = utf8_length(text_, at_);
      if (length == 0) return std::nullopt;
      result.append(text_, at_, length);
      at_ += length;
    }
    return result;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

bool is_json(std::string_view text) { return Grammar(text).document(); }

}  // namespace hearth::test
