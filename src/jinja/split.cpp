#include "jinja/split.h"

#include <algorithm>

#include "jinja/meter.h"
#include "jinja/operators.h"
#include "jinja/unicode.h"

namespace hearth::jinja {
namespace {

bool is_line_end(uint32_t code) {
  return code == '\n' || code == '\r' || code == 0xb || code == 0xc ||
         (code >= 0x1c && code <= 0x1e) || code == 0x85 || code == 0x2028 || code == 0x2029;
}

}  // namespace

Values split_at(const std::string& text, const std::string& separator, int64_t limit,
                bool from_right) {
  if (separator.empty()) fail("split: an empty separator");
  charge_bytes(text.size());
  Values parts;
  std::string_view rest = text;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const size_t at = from_right ? rest.rfind(separator) : rest.find(separator);
    if (at == std::string_view::npos) break;
    charge(1);
    if (from_right) {
      parts.emplace_back(std::string(rest.substr(at + separator.size())));
      rest = rest.substr(0, at);
    } else {
      parts.emplace_back(std::string(rest.substr(0, at)));
      rest = rest.substr(at + separator.size());
    }
  }
  parts.emplace_back(std::string(rest));
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

Values split_at_space(const std::string& text, int64_t limit, bool from_right) {
  charge_values(text.size());
  Values parts;
  std::string_view rest = text;
  while (true) {
    if (from_right) {
      rest.remove_suffix(trailing_space(rest));
    } else {
      rest.remove_prefix(leading_space(rest));
    }
    if (rest.empty()) break;
    if (limit >= 0 && static_cast<int64_t>(parts.size()) >= limit) {
      parts.emplace_back(std::string(rest));
      break;
    }
    size_t length = 0;  // of the word at that end
    while (length < rest.size()) {
      size_t next = 0;
      if (from_right) {
        size_t begin = rest.size() - length - 1;
        while (begin > 0 && (rest[begin] & 0xc0) == 0x80) --begin;
        next = rest.size() - length - begin;
        if (leading_space(rest.substr(begin, next)) > 0) break;
      } else {
        next = first_character(rest.substr(length)).size();
        if (leading_space(rest.substr(length, next)) > 0) break;
      }
      length += next;
    }
    if (from_right) {
      parts.emplace_back(std::string(rest.substr(rest.size() - length)));
      rest.remove_suffix(length);
    } else {
      parts.emplace_back(std::string(rest.substr(0, length)));
      rest.remove_prefix(length);
    }
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

Values split_lines(const std::string& text, bool keep_ends) {
  charge_values(text.size());
  Values lines;
  std::string_view rest = text;
  while (!rest.empty()) {
    size_t end = 0;
    size_t mark = 0;
    while (end < rest.size()) {
      const std::string_view c = first_character(rest.substr(end));
      if (is_line_end(codes_of(c)[0])) {
        mark = rest.substr(end).starts_with("\r\n") ? 2 : c.size();
        break;
      }
      end += c.size();
    }
    lines.emplace_back(std::string(rest.substr(0, keep_ends ? end + mark : end)));
    rest.remove_prefix(end + mark);
  }
  return lines;
}

}  // namespace hearth::jinja
