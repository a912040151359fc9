#include "data/chat/jinja_tokens.h"

namespace hearth {
namespace {

constexpr std::string_view kSpace = " \t\r\n\f\v";

std::string_view trim_end(std::string_view text, std::string_view what) {
  const size_t last = text.find_last_not_of(what);
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

std::string_view trim_begin(std::string_view text, std::string_view what) {
  const size_t first = text.find_first_not_of(what);
  return text.substr(first == std::string_view::npos ? text.size() : first);
}

// What lstrip_blocks takes away before a block: white space back to the start of the line.
// `line_start`: the text itself begins one.
std::string_view strip_line_indent(std::string_view text, bool line_start) {
  const size_t newline = text.rfind('\n');
  if (newline == std::string_view::npos && !line_start) return text;
  const size_t line = newline == std::string_view::npos ? 0 : newline + 1;
  return trim_begin(text.substr(line), kSpace).empty() ? text.substr(0, line) : text;
}

// End of a tag's inside: the first closing mark outside of string literals.
size_t find_closing(std::string_view text, std::string_view closing) {
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quote != 0) {
      if (text[i] == '\\') {
        ++i;
      } else if (text[i] == quote) {
        quote = 0;
      }
    } else if (text.substr(i).starts_with(closing)) {
      return i;
    } else if (text[i] == '\'' || text[i] == '"') {
      quote = text[i];
    }
  }
  return std::string_view::npos;
}

// Jinja reads every kind of line end as "\n", in string literals as well.
std::string with_plain_newlines(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool pair = text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n';
    if (!pair) plain += text[i] == '\r' ? '\n' : text[i];
  }
  return plain;
}

size_t find_opening(std::string_view text) {
  for (size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1)) {
    if (at + 1 < text.size() &&
        std::string_view("%{#").find(text[at + 1]) != std::string_view::npos) {
      return at;
    }
  }
  return std::string_view::npos;
}

}  // namespace

std::optional<std::vector<JinjaToken>> cut_jinja(std::string_view source) {
  using Kind = JinjaToken::Kind;
  const std::string normal = with_plain_newlines(source);
  std::string_view text = normal;
  if (text.ends_with('\n')) text.remove_suffix(1);
  std::vector<JinjaToken> tokens;
  bool line_start = true;  // of the text that comes
  bool trim_all = false;   // the tag before ended in "-"
  while (true) {
    const size_t opening = find_opening(text);
    std::string_view literal = text.substr(0, opening);
    if (trim_all) literal = trim_begin(literal, kSpace);
    if (opening == std::string_view::npos) {
      if (!literal.empty()) tokens.push_back({Kind::text, std::string(literal)});
      return tokens;
    }
    const char mark = text[opening + 1];
    const std::string_view closing = mark == '%' ? "%}" : mark == '{' ? "}}" : "#}";
    text.remove_prefix(opening + 2);
    const bool strip_before = text.starts_with('-');
    const bool keep_before = text.starts_with('+');
    if (strip_before) {
      literal = trim_end(literal, kSpace);
    } else if (mark != '{' && !keep_before) {
      literal = strip_line_indent(literal, line_start);
    }
    if (!literal.empty()) tokens.push_back({Kind::text, std::string(literal)});
    if (strip_before || keep_before) text.remove_prefix(1);

    const size_t end = mark == '#' ? text.find(closing) : find_closing(text, closing);
    if (end == std::string_view::npos) return std::nullopt;
    std::string_view inside = text.substr(0, end);
    text.remove_prefix(end + 2);
    trim_all = inside.ends_with('-');
    const bool keep_after = mark != '{' && inside.ends_with('+');
    if (trim_all || keep_after) inside.remove_suffix(1);
    line_start = false;
    if (mark != '{' && !trim_all && !keep_after && text.starts_with('\n')) {
      text.remove_prefix(1);
      line_start = true;
    }
    if (mark == '#') continue;
    inside = trim_begin(trim_end(inside, kSpace), kSpace);
    tokens.push_back({mark == '%' ? Kind::statement : Kind::expression, std::string(inside)});
  }
}

}  // namespace hearth
