// JSON values: parsed strictly, written so that numbers read back to the same double.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hearth {

class Json;
using JsonArray = std::vector<Json>;
/// Members in the order of the text. Lookup is linear; readers of large maps (vocabularies, tensor
/// headers) walk them once.
using JsonObject = std::vector<std::pair<std::string, Json>>;

/// An integer beyond 64 bits, as its decimal digits in the text.
struct BigInteger {
  std::string digits;
};

/// A JSON value. An integer is an int64, or a uint64 if larger. A big integer is neither integer
/// nor number to is_*, so readers of counts refuse it and name the field.
class Json {
 public:
  Json() = default;
  // Defined in json.cpp: inlined copies of a variant are large, and gcc 12 warns about them
  // wrongly.
  ~Json();
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;

  Json(std::nullptr_t) {}
  Json(bool b) : value_(b) {}
  Json(int i) : value_(int64_t{i}) {}
  Json(int64_t i) : value_(i) {}
  Json(uint64_t i);
  Json(double d) : value_(d) {}
  Json(BigInteger i) : value_(std::move(i)) {}
  Json(const char* s) : value_(std::string(s)) {}
  Json(std::string_view s) : value_(std::string(s)) {}
  Json(std::string s) : value_(std::move(s)) {}
  Json(JsonArray a) : value_(std::move(a)) {}
  Json(JsonObject o) : value_(std::move(o)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const;  // no fraction or exponent in the text; int64 or uint64
  bool is_signed() const;   // an integer within int64
  bool is_number() const;
  bool is_big_integer() const { return std::holds_alternative<BigInteger>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<JsonArray>(value_); }
  bool is_object() const { return std::holds_alternative<JsonObject>(value_); }

  // The value as a type; std::logic_error if it has another type (check with is_* first).
  bool as_bool() const;
  int64_t as_int() const;
  uint64_t as_uint() const;
  double as_double() const;              // any number
  const std::string& as_digits() const;  // of a big integer
  const std::string& as_string() const;
  const JsonArray& as_array() const;
  JsonArray& as_array();
  const JsonObject& as_object() const;
  JsonObject& as_object();

  /// A member; nullptr if it is absent or this is not an object.
  const Json* find(std::string_view key) const;
  /// Sets or appends a member; a null value becomes an object first.
  Json& operator[](std::string_view key);
  /// Appends to an array; a null value becomes an array first.
  void push_back(Json v);

  /// Text on one line (indent < 0) or indented. Doubles get the shortest text that reads back to
  /// the same double; non-finite doubles are written as null. Valid UTF-8 is kept; invalid bytes
  /// become U+FFFD.
  std::string dump(int indent = -1) const;

 private:
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, JsonArray, JsonObject,
               BigInteger>
      value_;
};

/// Limits of a parse.
struct JsonLimits {
  int depth = 64;
};

/// Longer integers are refused, as in Python.
inline constexpr size_t kMaxIntegerDigits = 4300;

/// Parses one JSON document. `source` names the file (and line) in messages. Input error for bad
/// syntax, invalid UTF-8, a byte order mark, duplicate keys, nesting deeper than the limit, numbers
/// that overflow, or text after the document.
Json parse_json(std::string_view text, const std::string& source, JsonLimits limits = {});

}  // namespace hearth
