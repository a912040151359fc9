// The rules of white space are those of jinja2/lexer.py: what a "-" strips, what trim_blocks and
// lstrip_blocks take, and that newlines of every kind are read as "\n".
#include "jinja/lexer.h"

#include <array>
#include <charconv>
#include <cmath>

#include "jinja/unicode.h"

namespace hearth::jinja {
namespace {

using Kind = Token::Kind;

constexpr std::string_view kDigits = "0123456789";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c < 0;
}

std::string with_plain_newlines(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const bool pair = text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n';
    if (!pair) plain += text[i] == '\r' ? '\n' : text[i];
  }
  return plain;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : normal_(with_plain_newlines(source)), rest_(normal_) {
    if (rest_.ends_with('\n')) rest_.remove_suffix(1);
  }

  std::vector<Token> run() {
    while (!rest_.empty()) read_text_and_tag();
    add(Kind::end);
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw TemplateSyntaxError{line_, message};
  }

  void advance(size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) line_ += rest_[i] == '\n' ? 1 : 0;
    rest_.remove_prefix(bytes);
  }

  Token& add(Kind kind, std::string text = {}) {
    tokens_.push_back({kind, line_, std::move(text), 0, 0});
    return tokens_.back();
  }

  void skip_space() { advance(leading_space(rest_)); }

  // The text up to the next tag, less what lstrip_blocks or a "-" in the tag strips.
  void read_text_and_tag() {
    size_t opening = 0;
    while (true) {
      opening = rest_.find('{', opening);
      if (opening == std::string_view::npos || opening + 1 >= rest_.size()) {
        opening = std::string_view::npos;
        break;
      }
      const char mark = rest_[opening + 1];
      if (mark == '%' || mark == '{' || mark == '#') break;
      ++opening;
    }
    if (opening == std::string_view::npos) {
      add_text(rest_);
      advance(rest_.size());
      return;
    }
    const char mark = rest_[opening + 1];
    const char sign = opening + 2 < rest_.size() ? rest_[opening + 2] : '\0';
    add_text(stripped_before(rest_.substr(0, opening), mark, sign));
    advance(opening + 2);
    if (sign == '-' || sign == '+') advance(1);
    line_start_ = false;
    if (mark == '#') {
      read_comment();
    } else if (mark == '%' && begins_raw()) {
      read_raw();
    } else {
      read_tag(mark == '%');
    }
  }

  std::string_view stripped_before(std::string_view text, char mark, char sign) const {
    if (sign == '-') return text.substr(0, text.size() - trailing_space(text));
    if (sign == '+' || mark == '{') return text;
    const size_t newline = text.rfind('\n');
    if (newline == std::string_view::npos && !line_start_) return text;
    const size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    const std::string_view indent = text.substr(line);
    return leading_space(indent) == indent.size() ? text.substr(0, line) : text;
  }

  void add_text(std::string_view text) {
    if (!text.empty()) add(Kind::text, std::string(text));
  }

  // Behind the closing mark of a block: a "-" strips, else trim_blocks takes one newline.
  void after_block(bool strip, bool keep) {
    if (strip) {
      const size_t space = leading_space(rest_);
      line_start_ = space > 0 && rest_[space - 1] == '\n';
      advance(space);
    } else if (!keep && rest_.starts_with('\n')) {
      advance(1);
      line_start_ = true;
    }
  }

  void read_comment() {
    const size_t closing = rest_.find("#}");
    if (closing == std::string_view::npos) fail("a comment without its end #}");
    const char sign = closing > 0 ? rest_[closing - 1] : '\0';
    advance(closing + 2);
    after_block(sign == '-', sign == '+');
  }

  // At "raw %}" behind an opening mark: takes it.
  bool begins_raw() {
    std::string_view at = rest_;
    at.remove_prefix(leading_space(at));
    if (!at.starts_with("raw")) return false;
    at.remove_prefix(3);
    at.remove_prefix(leading_space(at));
    const bool strip = at.starts_with("-%}");
    if (!strip && !at.starts_with("%}")) return false;
    at.remove_prefix(strip ? 3 : 2);
    if (strip) at.remove_prefix(leading_space(at));
    advance(rest_.size() - at.size());
    line_start_ = rest_.data()[-1] == '\n';
    return true;
  }

  void read_raw() {
    for (size_t from = 0;;) {
      const size_t opening = rest_.find("{%", from);
      if (opening == std::string_view::npos) fail("a raw block without its endraw");
      std::string_view at = rest_.substr(opening + 2);
      const char sign = at.empty() ? '\0' : at[0];
      if (sign == '-' || sign == '+') at.remove_prefix(1);
      at.remove_prefix(leading_space(at));
      from = opening + 2;
      if (!at.starts_with("endraw")) continue;
      at.remove_prefix(6);
      at.remove_prefix(leading_space(at));
      const char end = at.empty() ? '\0' : at[0];
      if (end == '-' || end == '+') at.remove_prefix(1);
      if (!at.starts_with("%}")) continue;
      at.remove_prefix(2);
      line_start_ = false;
      add_text(stripped_before(rest_.substr(0, opening), '%', sign));
      advance(rest_.size() - at.size());
      return after_block(end == '-', end == '+');
    }
  }

  void read_tag(bool block) {
    add(block ? Kind::statement_begin : Kind::output_begin);
    std::string open;
    while (true) {
      skip_space();
      if (rest_.empty()) fail(block ? "a tag without its end %}" : "a tag without its end }}");
      if (open.empty() && read_tag_end(block)) return;
      read_token(open);
    }
  }

  bool read_tag_end(bool block) {
    const std::string_view closing = block ? "%}" : "}}";
    const char sign = rest_[0];
    const bool strip = sign == '-' && rest_.substr(1).starts_with(closing);
    const bool keep = block && sign == '+' && rest_.substr(1).starts_with(closing);
    if (!strip && !keep && !rest_.starts_with(closing)) return false;
    add(block ? Kind::statement_end : Kind::output_end);
    advance(closing.size() + (strip || keep ? 1 : 0));
    if (block) {
      after_block(strip, keep);
    } else if (strip) {
      after_block(true, false);
    }
    return true;
  }

  void read_token(std::string& open) {
    const char c = rest_[0];
    if (c == '\'' || c == '"') return read_string(c);
    if (is_digit(c)) return read_number();
    if (is_name_start(c)) return read_name();
    read_operator(open);
  }

  void read_name() {
    size_t end = 0;
    while (end < rest_.size() && (is_name_start(rest_[end]) || is_digit(rest_[end]))) {
      if (rest_[end] < 0) fail("names can only have the letters A to Z");
      ++end;
    }
    add(Kind::name, std::string(rest_.substr(0, end)));
    advance(end);
  }

  void read_string(char quote) {
    size_t end = 1;
    while (end < rest_.size() && rest_[end] != quote) end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size()) fail("a string without its closing quote");
    const std::string_view inside = rest_.substr(1, end - 1);
    std::string text;
    for (size_t i = 0; i < inside.size();) {
      if (inside[i] == '\\') {
        i = read_escape(inside, i + 1, text);
      } else {
        text += inside[i++];
      }
    }
    add(Kind::string, std::move(text));
    advance(end + 1);
  }

  // Python's escapes, from behind the backslash; gives the position behind it.
  size_t read_escape(std::string_view inside, size_t i, std::string& text) const {
    static constexpr std::string_view kFrom = "\\'\"abfnrtv";
    static constexpr std::string_view kTo = "\\'\"\a\b\f\n\r\t\v";
    const char c = inside[i];
    if (c == '\n') return i + 1;
    if (const size_t simple = kFrom.find(c); simple != std::string_view::npos) {
      text += kTo[simple];
      return i + 1;
    }
    if (c == 'N') fail("escapes \\N{...} are not supported");
    const bool octal = c >= '0' && c <= '7';
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : octal ? 3 : 0;
    if (digits == 0) {  // an unknown escape stays as it is
      text += '\\';
      return i;
    }
    const size_t first = octal ? i : i + 1;
    const std::string_view part = inside.substr(first, digits);
    uint32_t code = 0;
    const auto read = std::from_chars(part.data(), part.data() + part.size(), code, octal ? 8 : 16);
    const auto length = static_cast<size_t>(read.ptr - part.data());
    if (read.ec != std::errc() || (!octal && length != digits)) {
      fail(std::string("a bad escape \\") + c);
    }
    if (!append_code(text, code)) fail("an escape of a character that does not exist");
    return first + length;
  }

  // Digits with single underscores between them, from `at`; gives the position behind them.
  size_t digits_end(size_t at, std::string_view digits) const {
    while (at < rest_.size()) {
      const bool digit = digits.find(rest_[at]) != std::string_view::npos;
      const bool gap = rest_[at] == '_' && at + 1 < rest_.size() &&
                       digits.find(rest_[at + 1]) != std::string_view::npos;
      if (!digit && !gap) break;
      ++at;
    }
    return at;
  }

  void read_number() {
    static constexpr std::string_view kHex = "0123456789abcdefABCDEF";
    if (rest_[0] == '0' && rest_.size() > 2) {
      const char mark = static_cast<char>(rest_[1] | 0x20);
      const int base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
      const std::string_view digits = base == 16 ? kHex : kDigits.substr(0, base == 8 ? 8 : 2);
      if (base != 0) {
        const size_t end = digits_end(2, digits);
        if (end > 2) return add_integer(2, end, base);
      }
    }
    size_t end = digits_end(0, kDigits);
    bool real = false;
    if (end + 1 < rest_.size() && rest_[end] == '.' && is_digit(rest_[end + 1]) && !after_dot()) {
      end = digits_end(end + 1, kDigits);
      real = true;
    }
    if (end + 1 < rest_.size() && (rest_[end] | 0x20) == 'e' && !after_dot()) {
      const size_t sign = rest_[end + 1] == '+' || rest_[end + 1] == '-' ? 1 : 0;
      if (end + 1 + sign < rest_.size() && is_digit(rest_[end + 1 + sign])) {
        end = digits_end(end + 1 + sign, kDigits);
        real = true;
      }
    }
    if (real) return add_real(end);
    if (rest_[0] == '0') {  // zeros alone: a number does not begin with 0
      end = digits_end(0, "0");
    }
    add_integer(0, end, 10);
  }

  // "1.0.5" is an index of an index: no fraction begins behind a dot.
  bool after_dot() const {
    return tokens_.back().kind == Kind::op && tokens_.back().text == "." && rest_.data()[-1] == '.';
  }

  std::string without_gaps(size_t begin, size_t end) const {
    std::string digits;
    for (const char c : rest_.substr(begin, end - begin)) {
      if (c != '_') digits += c;
    }
    return digits;
  }

  void add_integer(size_t begin, size_t end, int base) {
    const std::string digits = without_gaps(begin, end);
    Token& token = add(Kind::integer);
    const auto read =
        std::from_chars(digits.data(), digits.data() + digits.size(), token.integer, base);
    if (read.ec != std::errc()) fail("an integer that does not fit 64 bits");
    advance(end);
  }

  void add_real(size_t end) {
    const std::string digits = without_gaps(0, end);
    Token& token = add(Kind::real);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), token.real);
    if (read.ec != std::errc()) fail("a number that is too large or too small");
    advance(end);
  }

  void read_operator(std::string& open) {
    static constexpr std::array<std::string_view, 26> kOperators = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (const std::string_view op : kOperators) {
      if (!rest_.starts_with(op)) continue;
      const char c = op[0];
      if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : c == '[' ? ']' : '}';
      if (c == ')' || c == ']' || c == '}') {
        if (open.empty() || open.back() != c) fail(std::string("unexpected '") + c + "'");
        open.pop_back();
      }
      add(Kind::op, std::string(op));
      return advance(op.size());
    }
    fail("unexpected character '" + std::string(first_character(rest_)) + "'");
  }

  std::string normal_;
  std::string_view rest_;
  std::vector<Token> tokens_;
  int line_ = 1;
  bool line_start_ = true;  // the text that comes begins a line
};

}  // namespace

std::vector<Token> cut(std::string_view source) { return Lexer(source).run(); }

}  // namespace hearth::jinja
