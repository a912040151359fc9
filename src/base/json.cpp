// Values and writing; json_parse.cpp reads.
#include "base/json.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/utf8.h"

namespace hearth {
namespace {

void write_string(std::string& out, std::string_view text) {
  if (find_invalid_utf8(text) != std::string_view::npos) {
    return write_string(out, replace_invalid_utf8(text));
  }
  constexpr char digits[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default: {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7f) {
          out.append("\\u00").append({digits[byte >> 4], digits[byte & 15]});
        } else {
          out += c;
        }
      }
    }
  }
  out += '"';
}

template <class Number>
std::string_view digits_of(char (&buffer)[32], Number value) {
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, static_cast<size_t>(end - buffer)};
}

void write_double(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char buffer[32];
  const std::string_view digits = digits_of(buffer, value);
  out += digits;
  // Without point or exponent it would read back as an integer.
  if (digits.find_first_of(".e") == std::string_view::npos) out += ".0";
}

void new_line(std::string& out, int indent, int level) {
  if (indent < 0) return;
  out += '\n';
  out.append(static_cast<size_t>(indent) * static_cast<size_t>(level), ' ');
}

void write(std::string& out, const Json& value, int indent, int level) {
  if (value.is_null()) {
    out += "null";
  } else if (value.is_bool()) {
    out += value.as_bool() ? "true" : "false";
  } else if (value.is_integer()) {
    char buffer[32];
    out +=
        value.is_signed() ? digits_of(buffer, value.as_int()) : digits_of(buffer, value.as_uint());
  } else if (value.is_number()) {
    write_double(out, value.as_double());
  } else if (value.is_big_integer()) {
    out += value.as_digits();
  } else if (value.is_string()) {
    write_string(out, value.as_string());
  } else if (value.is_array()) {
    out += '[';
    bool first = true;
    for (const Json& item : value.as_array()) {
      if (!first) out += indent < 0 ? ", " : ",";
      first = false;
      new_line(out, indent, level + 1);
      write(out, item, indent, level + 1);
    }
    if (!first) new_line(out, indent, level);
    out += ']';
  } else {
    out += '{';
    bool first = true;
    for (const auto& [key, member] : value.as_object()) {
      if (!first) out += indent < 0 ? ", " : ",";
      first = false;
      new_line(out, indent, level + 1);
      write_string(out, key);
      out += ": ";
      write(out, member, indent, level + 1);
    }
    if (!first) new_line(out, indent, level);
    out += '}';
  }
}

}  // namespace

Json::~Json() = default;
// The value is copied first, then moved: a variant of libstdc++ 12 whose own copy runs out of memory
// destroys what it never held.
Json::Json(const Json& other) {
  std::visit(
      [this](const auto& value) {
        auto copy = value;
        value_ = std::move(copy);
      },
      other.value_);
}
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) {
  Json copy(other);
  return *this = std::move(copy);
}
Json& Json::operator=(Json&& other) noexcept = default;

Json::Json(uint64_t i) {
  if (i <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    value_ = static_cast<int64_t>(i);
  } else {
    value_ = i;
  }
}

bool Json::is_signed() const { return std::holds_alternative<int64_t>(value_); }
bool Json::is_integer() const { return is_signed() || std::holds_alternative<uint64_t>(value_); }
bool Json::is_number() const { return is_integer() || std::holds_alternative<double>(value_); }

bool Json::as_bool() const {
  HEARTH_CHECK(is_bool(), "json: not a bool");
  return std::get<bool>(value_);
}

int64_t Json::as_int() const {
  HEARTH_CHECK(is_signed(), "json: not an integer that fits int64");
  return std::get<int64_t>(value_);
}

uint64_t Json::as_uint() const {
  if (const auto* large = std::get_if<uint64_t>(&value_)) return *large;
  HEARTH_CHECK(is_signed() && as_int() >= 0, "json: not an integer that fits uint64");
  return static_cast<uint64_t>(as_int());
}

double Json::as_double() const {
  if (const auto* real = std::get_if<double>(&value_)) return *real;
  if (is_signed()) return static_cast<double>(as_int());
  return static_cast<double>(as_uint());
}

const std::string& Json::as_digits() const {
  HEARTH_CHECK(is_big_integer(), "json: not a big integer");
  return std::get<BigInteger>(value_).digits;
}

const std::string& Json::as_string() const {
  HEARTH_CHECK(is_string(), "json: not a string");
  return std::get<std::string>(value_);
}

const JsonArray& Json::as_array() const {
  HEARTH_CHECK(is_array(), "json: not an array");
  return std::get<JsonArray>(value_);
}

JsonArray& Json::as_array() {
  HEARTH_CHECK(is_array(), "json: not an array");
  return std::get<JsonArray>(value_);
}

const JsonObject& Json::as_object() const {
  HEARTH_CHECK(is_object(), "json: not an object");
  return std::get<JsonObject>(value_);
}

JsonObject& Json::as_object() {
  HEARTH_CHECK(is_object(), "json: not an object");
  return std::get<JsonObject>(value_);
}

const Json* Json::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const auto& [name, value] : as_object()) {
    if (name == key) return &value;
  }
  return nullptr;
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) value_ = JsonObject{};
  for (auto& [name, value] : as_object()) {
    if (name == key) return value;
  }
  return as_object().emplace_back(std::string(key), Json()).second;
}

void Json::push_back(Json v) {
  if (is_null()) value_ = JsonArray{};
  as_array().push_back(std::move(v));
}

std::string Json::dump(int indent) const {
  std::string out;
  write(out, *this, indent, 0);
  return out;
}

}  // namespace hearth
