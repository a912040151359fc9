// Values of the template language. They behave like Python's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"

namespace hearth::jinja {

/// An error of a template. Template::render adds the template's name and the line.
class TemplateError : public std::runtime_error {
 public:
  explicit TemplateError(const std::string& message) : std::runtime_error(message) {}
};

class Value;
class Evaluator;

/// A text. Positions and lengths in templates count characters; ASCII texts are indexed by byte.
/// The meter counts its bytes until it is destroyed.
struct String {
  explicit String(std::string text, bool safe = false);
  ~String();
  String(const String&) = delete;
  String& operator=(const String&) = delete;

  std::string bytes;  // UTF-8
  bool ascii = true;
  bool safe = false;  // from the filters safe and escape; + then escapes the other operand
};

struct Arguments;
using Values = std::vector<Value>;

/// Kinds of iterables. As in Python, generators (the results of map, select, items ...) can be
/// walked once, have no length and are always true.
enum class ListKind : uint8_t { list, tuple, range, generator, keys, values, items };

struct List;
struct Dict;

/// A value with its own behaviour: macro, method, function, loop, namespace, cycler, joiner.
struct Object {
  virtual ~Object() = default;
  virtual std::string type_name() const = 0;
  virtual std::optional<Value> attribute(Evaluator&, const std::string& name);
  virtual bool callable() const { return false; }
  virtual Value call(Evaluator&, Arguments& arguments);
  virtual std::string text() const;
  int depth = 1;  // nesting depth, its content included
};

class Value {
 public:
  struct Undefined {
    std::shared_ptr<const std::string> why;
  };
  struct None {};
  struct Big {
    std::shared_ptr<const String> digits;
  };

  Value() : value_(None{}) {}
  Value(bool b) : value_(b) {}
  Value(int i) : value_(int64_t{i}) {}
  Value(int64_t i) : value_(i) {}
  Value(double d) : value_(d) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(std::string text) : value_(std::make_shared<const String>(std::move(text))) {}
  Value(std::shared_ptr<const String> text) : value_(std::move(text)) {}
  Value(std::shared_ptr<List> list) : value_(std::move(list)) {}
  Value(std::shared_ptr<Dict> dict) : value_(std::move(dict)) {}
  Value(std::shared_ptr<Object> object) : value_(std::move(object)) {}

  static Value undefined(std::string why);
  static Value safe(std::string text);
  static Value list(Values items, ListKind kind = ListKind::list);
  static Value from_json(const Json& json);
  /// An integer of any size from decimal digits, with an optional sign and no leading zeros.
  static Value integer(std::string digits);

  bool is_undefined() const { return std::holds_alternative<Undefined>(value_); }
  bool is_none() const { return std::holds_alternative<None>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_int() const { return std::holds_alternative<int64_t>(value_); }
  bool is_float() const { return std::holds_alternative<double>(value_); }
  bool is_integral() const { return is_int() || is_bool(); }  // a Python int that fits 64 bits
  bool is_big() const { return std::holds_alternative<Big>(value_); }  // a larger Python int
  bool is_number() const { return is_integral() || is_float() || is_big(); }
  bool is_string() const { return std::holds_alternative<std::shared_ptr<const String>>(value_); }
  bool is_list() const { return std::holds_alternative<std::shared_ptr<List>>(value_); }
  bool is_list(ListKind kind) const;
  bool is_dict() const { return std::holds_alternative<std::shared_ptr<Dict>>(value_); }
  bool is_object() const { return std::holds_alternative<std::shared_ptr<Object>>(value_); }

  // Accessors. Check the type with is_* first.
  const std::string& why() const;  // of an undefined value: the error message if it is used
  bool as_bool() const { return std::get<bool>(value_); }
  int64_t as_int() const { return is_bool() ? as_bool() : std::get<int64_t>(value_); }
  /// Of a number. TemplateError if a big integer is too large for a double, as in Python.
  double as_double() const;
  const std::string& digits() const { return std::get<Big>(value_).digits->bytes; }
  const String& as_string() const { return *std::get<std::shared_ptr<const String>>(value_); }
  const std::string& bytes() const { return as_string().bytes; }
  List& as_list() const { return *std::get<std::shared_ptr<List>>(value_); }
  Dict& as_dict() const { return *std::get<std::shared_ptr<Dict>>(value_); }
  Object& as_object() const { return *std::get<std::shared_ptr<Object>>(value_); }

  bool truth() const;
  /// Python's name of the type, for messages.
  std::string type_name() const;
  int depth() const;
  /// Whether both are the same object in memory; for numbers, texts and none, the same type and
  /// value.
  bool same_as(const Value& other) const;

 private:
  std::variant<Undefined, None, bool, int64_t, double, std::shared_ptr<const String>,
               std::shared_ptr<List>, std::shared_ptr<Dict>, std::shared_ptr<Object>, Big>
      value_;
};

/// Limit on nested values. Creating a deeper value is an error.
inline constexpr int kMaxDepth = 200;

struct List {
  ListKind kind = ListKind::list;
  Values items;
  int depth = 1;
  bool used = false;             // a generator that is consumed
  int64_t range[3] = {0, 0, 1};  // start, stop, step of a range
  bool grouped = false;          // a pair of groupby: .grouper and .list
  bool has_length() const { return kind != ListKind::generator; }
  bool has_index() const { return kind <= ListKind::range; }
};

/// Keeps insertion order. Lookup is linear; callers charge the meter for it.
struct Dict {
  std::vector<std::pair<Value, Value>> items;
  int depth = 1;
  int64_t message = -1;  // if this dict is a message of the chat: its index
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  void set(const Value& key, Value value);
};

/// The arguments of a call.
struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// The arguments in the order of `names`; an absent argument is null. Refuses unknown names,
/// surplus arguments, and a missing one of the first `required`.
std::vector<const Value*> bind(const char* function, const Arguments& arguments,
                               const std::vector<const char*>& names, size_t required = 0);

}  // namespace hearth::jinja
