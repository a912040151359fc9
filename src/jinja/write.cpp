#include "jinja/write.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/utf8.h"
#include "jinja/meter.h"
#include "jinja/operators.h"
#include "jinja/unicode.h"

namespace hearth::jinja {
namespace {

void append_hex(std::string& out, const char* prefix, uint32_t code, int digits) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += prefix;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += kHex[code >> shift & 15];
}

void append_repr(std::string& out, const std::string& text) {
  charge_bytes(text.size());
  const bool single = text.find('\'') == std::string::npos || text.find('"') != std::string::npos;
  const char quote = single ? '\'' : '"';
  out += quote;
  for (std::string_view rest = text; !rest.empty();) {
    const Utf8Char c = decode_utf8(rest);
    const std::string_view character = first_character(rest);
    rest.remove_prefix(character.size());
    if (c.code == static_cast<uint32_t>(quote) || c.code == '\\') {
      out += '\\';
      out += static_cast<char>(c.code);
    } else if (c.code == '\n') {
      out += "\\n";
    } else if (c.code == '\r') {
      out += "\\r";
    } else if (c.code == '\t') {
      out += "\\t";
    } else if (is_printable(c.code)) {
      out += character;
    } else if (c.code < 0x100) {
      append_hex(out, "\\x", c.code, 2);
    } else if (c.code < 0x10000) {
      append_hex(out, "\\u", c.code, 4);
    } else {
      append_hex(out, "\\U", c.code, 8);
    }
  }
  out += quote;
}

void write(std::string& out, const Value& value);

void write_items(std::string& out, const Values& items, const char* open, const char* close) {
  out += open;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    write(out, items[i]);
    check_growing(out.size());
  }
  out += close;
}

void write_list(std::string& out, const List& list) {
  switch (list.kind) {
    case ListKind::list: return write_items(out, list.items, "[", "]");
    case ListKind::tuple:
      return write_items(out, list.items, "(", list.items.size() == 1 ? ",)" : ")");
    case ListKind::range:
      out += "range(" + std::to_string(list.range[0]) + ", " + std::to_string(list.range[1]);
      if (list.range[2] != 1) out += ", " + std::to_string(list.range[2]);
      out += ")";
      return;
    case ListKind::keys: return write_items(out, list.items, "dict_keys([", "])");
    case ListKind::values: return write_items(out, list.items, "dict_values([", "])");
    case ListKind::items: return write_items(out, list.items, "dict_items([", "])");
    case ListKind::generator: fail("printing a generator is not supported; use the filter list");
  }
}

void write_dict(std::string& out, const Dict& dict) {
  out += '{';
  for (size_t i = 0; i < dict.items.size(); ++i) {
    if (i > 0) out += ", ";
    write(out, dict.items[i].first);
    out += ": ";
    write(out, dict.items[i].second);
    check_growing(out.size());
  }
  out += '}';
}

// repr(value)
void write(std::string& out, const Value& value) {
  const Level level;
  charge(1);
  if (value.is_undefined()) out += "Undefined";
  if (value.is_none()) out += "None";
  if (value.is_bool()) out += value.as_bool() ? "True" : "False";
  if (value.is_int()) out += std::to_string(value.as_int());
  if (value.is_big()) out += value.digits();
  if (value.is_float()) out += float_text(value.as_double());
  if (value.is_string()) {
    if (value.as_string().safe) out += "Markup(";
    append_repr(out, value.bytes());
    if (value.as_string().safe) out += ")";
  }
  if (value.is_list()) write_list(out, value.as_list());
  if (value.is_dict()) write_dict(out, value.as_dict());
  if (value.is_object()) out += value.as_object().text();
  charge_bytes(out.size() / 8);
}

}  // namespace

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 40> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific);
  std::string text(buffer.data(), end.ptr);
  const size_t mark = text.find('e');
  const int exponent = std::stoi(text.substr(mark + 1));
  std::string digits = text.substr(0, mark);
  std::string sign;
  if (digits[0] == '-') {
    sign = "-";
    digits.erase(0, 1);
  }
  std::erase(digits, '.');
  if (exponent < -4 || exponent >= 16) {
    std::string power = std::to_string(std::abs(exponent));
    if (power.size() < 2) power.insert(0, "0");
    const std::string fraction = digits.size() > 1 ? "." + digits.substr(1) : "";
    return sign + digits[0] + fraction + (exponent < 0 ? "e-" : "e+") + power;
  }
  if (exponent < 0) {
    return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  }
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  const std::string fraction = digits.size() > whole ? digits.substr(whole) : "0";
  return sign + digits.substr(0, whole) + "." + fraction;
}

std::string to_repr(const Value& value) {
  std::string out;
  write(out, value);
  return out;
}

std::string to_text(const Value& value) {
  if (value.is_string()) return value.bytes();
  if (value.is_undefined()) return "";
  return to_repr(value);
}

std::string escaped(std::string_view text) {
  charge_bytes(text.size());
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\'': out += "&#39;"; break;
      case '"': out += "&#34;"; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace hearth::jinja
