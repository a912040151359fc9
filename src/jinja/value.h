// Values of the template language: Python's, as far as templates see them.
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

/// What a template does wrong; the evaluator adds name and line.
class TemplateError : public std::runtime_error {
 public:
  explicit TemplateError(const std::string& message) : std::runtime_error(message) {}
};

class Value;
class Evaluator;

/// A text. Positions and lengths in templates count characters; ASCII texts are indexed by byte.
/// Its bytes are counted by the meter while it lives.
struct String {
  explicit String(std::string text, bool safe = false);
  ~String();
  String(const String&) = delete;
  String& operator=(const String&) = delete;

  std::string bytes;  // UTF-8
  bool ascii = true;
  bool safe = false;  // marked by the filters safe and escape: + escapes what is added
};

struct Arguments;
using Values = std::vector<Value>;

/// What is iterated over. Generators (the results of map, select, items ...) are walked once, have
/// no length and are always true, as in Python.
enum class ListKind : uint8_t { list, tuple, range, generator, keys, values, items };

struct List;
struct Dict;

/// Things with behaviour of their own: macros, methods, functions, loop, namespace, cycler, joiner.
struct Object {
  virtual ~Object() = default;
  virtual std::string type_name() const = 0;
  virtual std::optional<Value> attribute(Evaluator&, const std::string& name);
  virtual bool callable() const { return false; }
  virtual Value call(Evaluator&, Arguments& arguments);
  virtual std::string text() const;
  int depth = 1;  // of the values it holds
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
  /// An integer of any size by its decimal digits: a sign at most, no leading zeros.
  static Value integer(std::string digits);

  bool is_undefined() const { return std::holds_alternative<Undefined>(value_); }
  bool is_none() const { return std::holds_alternative<None>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_int() const { return std::holds_alternative<int64_t>(value_); }
  bool is_float() const { return std::holds_alternative<double>(value_); }
  bool is_integral() const { return is_int() || is_bool(); }  // an int of Python within 64 bits
  bool is_big() const { return std::holds_alternative<Big>(value_); }  // an int beyond 64 bits
  bool is_number() const { return is_integral() || is_float() || is_big(); }
  bool is_string() const { return std::holds_alternative<std::shared_ptr<const String>>(value_); }
  bool is_list() const { return std::holds_alternative<std::shared_ptr<List>>(value_); }
  bool is_list(ListKind kind) const;
  bool is_dict() const { return std::holds_alternative<std::shared_ptr<Dict>>(value_); }
  bool is_object() const { return std::holds_alternative<std::shared_ptr<Object>>(value_); }

  // The value as a type that is_* has confirmed.
  const std::string& why() const;  // of an undefined value: what a use of it is refused with
  bool as_bool() const { return std::get<bool>(value_); }
  int64_t as_int() const { return is_bool() ? as_bool() : std::get<int64_t>(value_); }
  /// Of a number. TemplateError for a big integer beyond the doubles, as in Python.
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
  /// The same object in memory; of numbers, texts and none: the same value and type.
  bool same_as(const Value& other) const;

 private:
  std::variant<Undefined, None, bool, int64_t, double, std::shared_ptr<const String>,
               std::shared_ptr<List>, std::shared_ptr<Dict>, std::shared_ptr<Object>, Big>
      value_;
};

/// Values nest so deep at most; deeper ones are refused where they are made.
inline constexpr int kMaxDepth = 200;

struct List {
  ListKind kind = ListKind::list;
  Values items;
  int depth = 1;
  bool used = false;             // a generator that was walked
  int64_t range[3] = {0, 0, 1};  // start, stop, step of a range
  bool grouped = false;          // a pair of groupby: .grouper and .list
  bool has_length() const { return kind != ListKind::generator; }
  bool has_index() const { return kind <= ListKind::range; }
};

/// In order of insertion. Lookup is linear and charged by its callers.
struct Dict {
  std::vector<std::pair<Value, Value>> items;
  int depth = 1;
  int64_t message = -1;  // the number of the message that this is
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  void set(const Value& key, Value value);
};

/// What a call gives.
struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// The arguments in the order of `names`, null for those that are not given. Refuses what has no
/// name there and, of the first `required` ones, what is missing.
std::vector<const Value*> bind(const char* function, const Arguments& arguments,
                               const std::vector<const char*>& names, size_t required = 0);

}  // namespace hearth::jinja
