#include "jinja/json.h"

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "jinja/meter.h"
#include "jinja/operators.h"
#include "jinja/unicode.h"
#include "jinja/write.h"

namespace hearth::jinja {
namespace {

void append_unit(std::string& out, uint32_t unit) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kHex[unit >> shift & 15];
}

void append_string(std::string& out, const std::string& text, bool ascii) {
  charge_bytes(text.size());
  out += '"';
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view character = first_character(rest);
    const uint32_t code = decode_utf8(rest).code;
    rest.remove_prefix(character.size());
    switch (code) {
      case '"': out += "\\\""; continue;
      case '\\': out += "\\\\"; continue;
      case '\n': out += "\\n"; continue;
      case '\r': out += "\\r"; continue;
      case '\t': out += "\\t"; continue;
      case '\b': out += "\\b"; continue;
      case '\f': out += "\\f"; continue;
      default: break;
    }
    if (code < 0x20) {
      append_unit(out, code);
    } else if (!ascii || code < 0x7f) {
      out += character;
    } else if (code < 0x10000) {
      append_unit(out, code);
    } else {
      append_unit(out, 0xd800 + ((code - 0x10000) >> 10));
      append_unit(out, 0xdc00 + ((code - 0x10000) & 0x3ff));
    }
  }
  out += '"';
}

class Writer {
 public:
  explicit Writer(const JsonStyle& style) : style_(style) {}

  void write(const Value& value) {
    const Level level;
    charge(1);
    if (value.is_none()) {
      out += "null";
    } else if (value.is_bool()) {
      out += value.as_bool() ? "true" : "false";
    } else if (value.is_int()) {
      out += std::to_string(value.as_int());
    } else if (value.is_big()) {
      charge_bytes(value.digits().size());
      out += value.digits();
    } else if (value.is_float()) {
      write_float(value.as_double());
    } else if (value.is_string()) {
      append_string(out, value.bytes(), style_.ascii);
    } else if (value.is_list(ListKind::list) || value.is_list(ListKind::tuple)) {
      write_list(value.as_list().items);
    } else if (value.is_dict()) {
      write_dict(value.as_dict());
    } else {
      fail("tojson: an object of type " + value.type_name() + " is not JSON");
    }
  }

  std::string out;

 private:
  void write_float(double value) {
    const char* inf = value < 0 ? "-Infinity" : "Infinity";
    out += std::isnan(value) ? "NaN" : std::isinf(value) ? inf : float_text(value);
  }

  void next(bool first) {
    check_growing(out.size());
    if (!first) out += style_.between;
    newline();
  }
  void newline() {
    if (!style_.indent) return;
    charge_bytes(style_.indent->size() * static_cast<size_t>(level_));
    out += '\n';
    for (int i = 0; i < level_; ++i) out += *style_.indent;
  }

  void write_list(const Values& items) {
    if (items.empty()) {
      out += "[]";
      return;
    }
    out += '[';
    ++level_;
    for (size_t i = 0; i < items.size(); ++i) {
      next(i == 0);
      write(items[i]);
    }
    --level_;
    newline();
    out += ']';
  }

  void write_dict(const Dict& dict) {
    if (dict.items.empty()) {
      out += "{}";
      return;
    }
    auto items = dict.items;
    if (style_.sorted) {
      std::stable_sort(items.begin(), items.end(), [](const auto& a, const auto& b) {
        return compare(a.first, b.first, "<") == -1;
      });
    }
    out += '{';
    ++level_;
    for (size_t i = 0; i < items.size(); ++i) {
      next(i == 0);
      write_key(items[i].first);
      out += style_.colon;
      write(items[i].second);
    }
    --level_;
    newline();
    out += '}';
  }

  void write_key(const Value& key) {
    if (key.is_string()) return append_string(out, key.bytes(), style_.ascii);
    if (!key.is_none() && !key.is_number()) {
      fail("tojson: keys must be texts, numbers or none, not " + key.type_name());
    }
    out += '"';
    write(key);
    out += '"';
  }

  const JsonStyle& style_;
  int level_ = 0;
};

}  // namespace

std::string to_json(const Value& value, const JsonStyle& style) {
  Writer writer(style);
  writer.write(value);
  return std::move(writer.out);
}

}  // namespace hearth::jinja
