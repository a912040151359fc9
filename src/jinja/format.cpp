#include "jinja/format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "jinja/meter.h"
#include "jinja/operators.h"
#include "jinja/sequences.h"
#include "jinja/unicode.h"
#include "jinja/write.h"

namespace hearth::jinja {
namespace {

constexpr int64_t kMaxWidth = 10'000;

// [[fill]align][sign][#][0][width][,][.precision][type], and the same of a % conversion.
struct Spec {
  std::string fill = " ";
  char align = 0;  // < > ^ =
  char sign = 0;   // + - and space
  bool alternate = false;
  int64_t width = 0;
  char thousands = 0;
  int64_t precision = -1;
  char type = 0;
};

int64_t take_number(std::string_view& text) {
  int64_t number = 0;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    number = number * 10 + (text[0] - '0');
    if (number > kMaxWidth) fail("a format wider than " + std::to_string(kMaxWidth));
    text.remove_prefix(1);
  }
  return number;
}

bool is_align(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

// Of a text that is not empty.
Spec read_spec(const std::string& text, bool of_text) {
  Spec spec;
  bool filled = false;
  std::string_view rest = text;
  const std::string_view first = first_character(rest);
  if (rest.size() > first.size() && is_align(rest[first.size()])) {
    spec.fill = std::string(first);
    filled = true;
    spec.align = rest[first.size()];
    rest.remove_prefix(first.size() + 1);
  } else if (is_align(rest[0])) {
    spec.align = rest[0];
    rest.remove_prefix(1);
  }
  const auto take = [&](std::string_view any) {
    if (rest.empty() || any.find(rest[0]) == std::string_view::npos) return '\0';
    const char c = rest[0];
    rest.remove_prefix(1);
    return c;
  };
  if (const char sign = take("+- ")) spec.sign = sign;
  spec.alternate = take("#") != 0;
  if (!filled && take("0") != 0) {
    spec.fill = "0";
    if (spec.align == 0 && !of_text) spec.align = '=';
  }
  spec.width = take_number(rest);
  spec.thousands = take(",_");
  if (take(".") != 0) spec.precision = take_number(rest);
  if (!rest.empty()) {
    spec.type = rest[0];
    rest.remove_prefix(1);
  }
  if (!rest.empty()) fail("an invalid format '" + text + "'");
  return spec;
}

std::string padded(const std::string& sign, const std::string& body, const Spec& spec,
                   char default_align) {
  const auto length = static_cast<int64_t>(count_codes(sign) + count_codes(body));
  const int64_t space = std::max<int64_t>(0, spec.width - length);
  const char align = spec.align != 0 ? spec.align : default_align;
  const int64_t before = align == '<' ? 0 : align == '^' ? space / 2 : space;
  std::string left;
  std::string right;
  for (int64_t i = 0; i < before; ++i) left += spec.fill;
  for (int64_t i = before; i < space; ++i) right += spec.fill;
  return align == '=' ? sign + left + body : left + sign + body + right;
}

std::string with_thousands(std::string digits, char mark) {
  size_t end = digits.find_first_not_of("0123456789");
  if (end == std::string::npos) end = digits.size();
  for (auto at = static_cast<int64_t>(end) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<size_t>(at), 1, mark);
  }
  return digits;
}

std::string c_format(char type, double value, int64_t precision, bool alternate) {
  const std::string format = std::string(alternate ? "%#.*" : "%.*") + type;
  std::array<char, 400> small;
  const int length =
      std::snprintf(small.data(), small.size(), format.c_str(), static_cast<int>(precision), value);
  if (length < static_cast<int>(small.size())) return std::string(small.data());
  std::string text(static_cast<size_t>(length) + 1, '\0');
  std::snprintf(text.data(), text.size(), format.c_str(), static_cast<int>(precision), value);
  text.pop_back();
  return text;
}

std::string sign_of(bool negative, char sign) {
  return negative ? "-" : sign == '+' ? "+" : sign == ' ' ? " " : "";
}

std::string format_float(double value, Spec spec) {
  const bool negative = std::signbit(value) && !std::isnan(value);
  const double size = std::fabs(value);
  const char type = spec.type == '%' ? 'f' : spec.type == 0 ? 'g' : spec.type;
  const int64_t precision = spec.precision < 0 ? 6 : spec.precision;
  std::string body;
  if (!std::isfinite(value)) {
    body = std::isnan(value) ? "nan" : "inf";
    if (type <= 'Z') body = to_upper(body);
  } else if (spec.type == 0 && spec.precision < 0) {
    body = float_text(size);
  } else if (spec.type == 0) {
    fail("a format with a precision needs a type (f, e or g)");
  } else {
    body = c_format(type, spec.type == '%' ? size * 100 : size, precision, spec.alternate);
  }
  if (spec.type == '%') body += '%';
  if (spec.thousands != 0) body = with_thousands(body, spec.thousands);
  return padded(sign_of(negative, spec.sign), body, spec, '>');
}

std::string format_integer(int64_t value, const Spec& spec) {
  if (spec.precision >= 0) fail("a format of an integer has no precision");
  const uint64_t size = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  std::string body;
  if (spec.type == 'c') {
    if (value < 0 ||
        !append_code(body, static_cast<uint32_t>(std::min<int64_t>(value, 0x110000)))) {
      fail("a format of a number that is not a character");
    }
    return padded("", body, spec, '<');
  }
  const int base = spec.type == 'x' || spec.type == 'X' ? 16
                   : spec.type == 'o'                   ? 8
                   : spec.type == 'b'                   ? 2
                                                        : 10;
  uint64_t rest = size;
  do {
    const auto digit = static_cast<int>(rest % static_cast<uint64_t>(base));
    const char letter = spec.type == 'X' ? 'A' : 'a';
    body.insert(body.begin(), static_cast<char>(digit < 10 ? '0' + digit : letter + digit - 10));
    rest /= static_cast<uint64_t>(base);
  } while (rest > 0);
  if (spec.thousands != 0) body = with_thousands(body, spec.thousands);
  std::string sign = sign_of(value < 0, spec.sign);
  if (spec.alternate && base != 10) sign += std::string("0") + spec.type;
  return padded(sign, body, spec, '>');
}

// In decimal alone; other bases are refused.
std::string format_big(const std::string& digits, const Spec& spec) {
  if (spec.precision >= 0) fail("a format of an integer has no precision");
  if (spec.type != 0 && spec.type != 'd' && spec.type != 'n') {
    fail(std::string("the format ") + spec.type + " of an integer beyond 64 bits is not supported");
  }
  const bool negative = digits[0] == '-';
  std::string body = digits.substr(negative ? 1 : 0);
  if (spec.thousands != 0) body = with_thousands(body, spec.thousands);
  return padded(sign_of(negative, spec.sign), body, spec, '>');
}

std::string cut_text(const std::string& text, int64_t precision) {
  if (precision < 0) return text;
  return text.substr(0, offset_of(text, static_cast<size_t>(precision)));
}

// One conversion of text % values.
std::string convert(const Value& value, Spec spec) {
  switch (spec.type) {
    case 's':
    case 'r': {
      const std::string text = spec.type == 's' ? to_text(value) : to_repr(value);
      return padded("", cut_text(text, spec.precision), spec, '>');
    }
    case 'd':
    case 'i':
    case 'u':
      require_defined(value);
      if (!value.is_number()) fail("%d needs a number, not " + value.type_name());
      if (value.is_float()) {
        if (!(std::fabs(value.as_double()) < 9.2e18)) fail("%d of a number that is too large");
        return format_integer(static_cast<int64_t>(value.as_double()), spec);
      }
      spec.type = 'd';
      [[fallthrough]];
    case 'x':
    case 'X':
    case 'o':
    case 'c':
      if (spec.type == 'c' && value.is_string() && length_of(value) == 1) {
        return padded("", value.bytes(), spec, '>');
      }
      if (value.is_big()) return format_big(value.digits(), spec);
      return format_integer(integer_of(value, "a format"), spec);
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
      require_defined(value);
      if (!value.is_number()) fail("a format needs a number, not " + value.type_name());
      return format_float(value.as_double(), spec);
    default: fail(std::string("the format %") + spec.type + " is not supported");
  }
}

}  // namespace

Value format_percent(const std::string& format, const Value& values) {
  charge_bytes(format.size());
  const bool tuple = values.is_list(ListKind::tuple);
  size_t used = 0;
  bool named = false;
  std::string out;
  for (std::string_view rest = format; !rest.empty();) {
    const size_t mark = rest.find('%');
    out += rest.substr(0, mark);
    if (mark == std::string_view::npos) break;
    rest.remove_prefix(mark + 1);
    const Value* value = nullptr;
    if (rest.starts_with('(')) {
      const size_t end = rest.find(')');
      if (end == std::string_view::npos || !values.is_dict()) fail("a format needs a mapping");
      value = values.as_dict().find(rest.substr(1, end - 1));
      if (value == nullptr) fail("a format names a key that is missing");
      named = true;
      rest.remove_prefix(end + 1);
    }
    Spec spec;
    bool left = false;
    while (!rest.empty() && std::string_view("-+ #0").find(rest[0]) != std::string_view::npos) {
      if (rest[0] == '-') left = true;
      if (rest[0] == '0') spec.fill = "0";
      if (rest[0] == '+' || (rest[0] == ' ' && spec.sign != '+')) spec.sign = rest[0];
      if (rest[0] == '#') spec.alternate = true;
      rest.remove_prefix(1);
    }
    spec.width = take_number(rest);
    if (rest.starts_with('.')) {
      rest.remove_prefix(1);
      spec.precision = take_number(rest);
    }
    if (rest.empty()) fail("an unfinished format");
    spec.type = rest[0];
    rest.remove_prefix(1);
    if (spec.type == '%') {
      out += '%';
      continue;
    }
    const bool text = spec.type == 's' || spec.type == 'r' || spec.type == 'c';
    if (left || text) spec.fill = " ";
    if (spec.fill == "0") spec.align = '=';
    if (left) spec.align = '<';
    if (value == nullptr) {
      if (tuple ? used >= values.as_list().items.size() : used > 0) {
        fail("not enough values for a format");
      }
      value = tuple ? &values.as_list().items[used] : &values;
      ++used;
    }
    out += convert(*value, spec);
    check_growing(out.size());
  }
  const bool left_over = tuple ? used < values.as_list().items.size()
                               : used == 0 && !named && !values.is_dict() && !values.is_list() &&
                                     !values.is_undefined();
  if (left_over) fail("not all values were used by a format");
  return out;
}

std::string format_value(const Value& value, const std::string& spec_text) {
  if (spec_text.empty()) return to_text(value);
  const Spec spec = read_spec(spec_text, value.is_string());
  if (value.is_string()) {
    if ((spec.type != 0 && spec.type != 's') || spec.align == '=' || spec.sign != 0 ||
        spec.alternate || spec.thousands != 0) {
      fail("a bad format of a text");
    }
    return padded("", cut_text(value.bytes(), spec.precision), spec, '<');
  }
  static constexpr std::string_view kOfIntegers("dxXobc\0n", 8);
  if (value.is_integral() && kOfIntegers.find(spec.type) != std::string_view::npos) {
    return format_integer(value.as_int(), spec);
  }
  if (value.is_big() && kOfIntegers.find(spec.type) != std::string_view::npos) {
    return format_big(value.digits(), spec);
  }
  if (!value.is_number() || std::string_view("eEfFgG%\0", 8).find(spec.type) == std::string::npos) {
    fail("a format that does not fit " + value.type_name());
  }
  return format_float(value.as_double(), spec);
}

}  // namespace hearth::jinja
