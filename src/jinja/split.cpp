#include <algorithm>

#include "jinja/operators.h"
#include "jinja/string_methods.h"
#include "jinja/unicode.h"
#include "jinja/write.h"

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

// {}, {0}, {name}, {name.attribute[item]!r:spec}, {{ and }}. A spec within a spec is refused.
std::string format_braces(Evaluator& e, const std::string& format, const Arguments& arguments) {
  std::string out;
  size_t next = 0;
  bool counted = false;  // a {0}
  charge_bytes(format.size());
  const auto first_of = [&](const std::string& name) -> Value {
    const bool number = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
    counted = counted || number;
    if (name.empty() || number) {
      const size_t at = name.empty() ? next++ : name.size() > 6 ? SIZE_MAX : std::stoul(name);
      if (counted && next > 0) fail("format: both {} and {0}");
      if (at >= arguments.positional.size()) fail("format: not enough values");
      return arguments.positional[at];
    }
    for (const auto& [key, value] : arguments.named) {
      if (key == name) return value;
    }
    fail("format: no value for '" + name + "'");
  };
  for (std::string_view rest = format; !rest.empty();) {
    const size_t brace = rest.find_first_of("{}");
    out += rest.substr(0, brace);
    if (brace == std::string_view::npos) break;
    rest.remove_prefix(brace);
    if (rest.size() > 1 && rest[1] == rest[0]) {
      out += rest[0];
      rest.remove_prefix(2);
      continue;
    }
    const size_t end = rest.find('}');
    if (rest[0] == '}' || end == std::string_view::npos) fail("format: a single brace");
    std::string field(rest.substr(1, end - 1));
    rest.remove_prefix(end + 1);
    if (field.find('{') != std::string::npos) fail("format: nested fields are not supported");
    std::string spec;
    if (const size_t colon = field.find(':'); colon != std::string::npos) {
      spec = field.substr(colon + 1);
      field.resize(colon);
    }
    char conversion = 0;
    if (field.size() > 1 && field[field.size() - 2] == '!') {
      conversion = field.back();
      field.resize(field.size() - 2);
    }
    size_t at = field.find_first_of(".[");
    Value value = first_of(field.substr(0, at));
    while (at != std::string::npos && at < field.size()) {
      const bool dot = field[at] == '.';
      const size_t stop = dot ? field.find_first_of(".[", at + 1) : field.find(']', at);
      if (!dot && stop == std::string::npos) fail("format: '[' without ']'");
      const std::string part =
          field.substr(at + 1, stop == std::string::npos ? stop : stop - at - 1);
      if (part.empty()) fail("format: '.' or '[' without a name");
      const bool number =
          part.size() < 7 && part.find_first_not_of("0123456789") == std::string::npos;
      value = dot      ? e.attribute(value, part)
              : number ? e.item(value, Value(static_cast<int64_t>(std::stoul(part))))
                       : e.item(value, Value(part));
      at = dot ? stop : stop + 1;
    }
    if (conversion == 'r') value = to_repr(value);
    if (conversion == 's') value = to_text(value);
    if (conversion != 0 && conversion != 'r' && conversion != 's') {
      fail("format: unknown conversion");
    }
    out += format_value(value, spec);
    check_growing(out.size());
    charge_bytes(out.size() / 8);
  }
  return out;
}

}  // namespace hearth::jinja
