#include "jinja/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "jinja/meter.h"
#include "jinja/operators.h"

namespace hearth::jinja {
namespace {

// Eight bytes at once: every text that a template makes is asked.
bool is_ascii(std::string_view text) {
  uint64_t bits = 0;
  size_t at = 0;
  for (; at + sizeof bits <= text.size(); at += sizeof bits) {
    std::memcpy(&bits, text.data() + at, sizeof bits);
    if ((bits & 0x8080808080808080U) != 0) return false;
  }
  return std::none_of(text.begin() + static_cast<ptrdiff_t>(at), text.end(),
                      [](char c) { return c < 0; });
}

int deeper(int depth) {
  if (depth >= kMaxDepth) {
    throw TemplateError("values nested deeper than " + std::to_string(kMaxDepth) + " levels");
  }
  return depth + 1;
}

}  // namespace

String::String(std::string text, bool marked)
    : bytes(std::move(text)), ascii(is_ascii(bytes)), safe(marked) {
  hold_text(static_cast<int64_t>(bytes.size()));
}

String::~String() { release_text(static_cast<int64_t>(bytes.size())); }

std::optional<Value> Object::attribute(Evaluator&, const std::string&) { return std::nullopt; }

Value Object::call(Evaluator&, Arguments&) {
  throw TemplateError("'" + type_name() + "' object is not callable");
}

std::string Object::text() const {
  throw TemplateError("printing a " + type_name() + " object is not supported");
}

Value Value::undefined(std::string why) {
  Value value;
  value.value_ = Undefined{std::make_shared<const std::string>(std::move(why))};
  return value;
}

Value Value::safe(std::string text) {
  return std::make_shared<const String>(std::move(text), true);
}

Value Value::list(Values items, ListKind kind) {
  auto list = std::make_shared<List>();
  list->kind = kind;
  for (const Value& item : items) list->depth = std::max(list->depth, deeper(item.depth()));
  list->items = std::move(items);
  return list;
}

Value Value::from_json(const Json& json) {
  if (json.is_null()) return {};
  if (json.is_bool()) return json.as_bool();
  if (json.is_signed()) return json.as_int();
  if (json.is_integer() || json.is_big_integer()) return integer(json.dump());
  if (json.is_number()) return json.as_double();
  if (json.is_string()) return json.as_string();
  if (json.is_array()) {
    Values items;
    items.reserve(json.as_array().size());
    for (const Json& item : json.as_array()) items.push_back(from_json(item));
    return list(std::move(items));
  }
  auto dict = std::make_shared<Dict>();
  dict->items.reserve(json.as_object().size());
  for (const auto& [key, member] : json.as_object()) {  // keys differ: the parser has checked
    dict->items.emplace_back(Value(key), from_json(member));
    dict->depth = std::max(dict->depth, deeper(dict->items.back().second.depth()));
  }
  return dict;
}

Value Value::integer(std::string digits) {
  int64_t small = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), small);
  if (read.ec == std::errc()) return small;
  Value value;
  value.value_ = Big{std::make_shared<const String>(std::move(digits))};
  return value;
}

double Value::as_double() const {
  if (is_float()) return std::get<double>(value_);
  if (!is_big()) return static_cast<double>(as_int());
  const double value = std::strtod(digits().c_str(), nullptr);
  if (!std::isfinite(value)) throw TemplateError("an integer that is too large for a float");
  return value;
}

bool Value::is_list(ListKind kind) const { return is_list() && as_list().kind == kind; }

const std::string& Value::why() const { return *std::get<Undefined>(value_).why; }

bool Value::truth() const {
  if (is_undefined() || is_none()) return false;
  if (is_bool()) return as_bool();
  if (is_int()) return as_int() != 0;
  if (is_float()) return as_double() != 0;
  if (is_string()) return !bytes().empty();
  if (is_list()) return !as_list().has_length() || !as_list().items.empty();
  if (is_dict()) return !as_dict().items.empty();
  return true;
}

std::string Value::type_name() const {
  if (is_undefined()) return "Undefined";
  if (is_none()) return "NoneType";
  if (is_bool()) return "bool";
  if (is_int() || is_big()) return "int";
  if (is_float()) return "float";
  if (is_string()) return "str";
  if (is_dict()) return "dict";
  if (is_object()) return as_object().type_name();
  static const char* const kNames[] = {"list",      "tuple",       "range",     "generator",
                                       "dict_keys", "dict_values", "dict_items"};
  return kNames[static_cast<size_t>(as_list().kind)];
}

int Value::depth() const {
  if (is_list()) return as_list().depth;
  if (is_dict()) return as_dict().depth;
  if (is_object()) return as_object().depth;
  return 0;
}

bool Value::same_as(const Value& other) const {
  if (value_.index() != other.value_.index()) return false;
  if (is_list()) return &as_list() == &other.as_list();
  if (is_dict()) return &as_dict() == &other.as_dict();
  if (is_object()) return &as_object() == &other.as_object();
  if (is_undefined() || is_none()) return true;
  if (is_string()) return bytes() == other.bytes();
  if (is_big()) return digits() == other.digits();
  return is_float() ? as_double() == other.as_double() : as_int() == other.as_int();
}

const Value* Dict::find(const Value& key) const {
  if (key.is_string()) return find(std::string_view(key.bytes()));
  for (const auto& item : items) {
    if (!item.first.is_string() && equal(item.first, key)) return &item.second;
  }
  return nullptr;
}

const Value* Dict::find(std::string_view key) const {
  for (const auto& item : items) {
    if (item.first.is_string() && item.first.bytes() == key) return &item.second;
  }
  return nullptr;
}

void Dict::set(const Value& key, Value value) {
  depth = std::max(depth, deeper(std::max(key.depth(), value.depth())));
  if (const Value* found = find(key)) {
    *const_cast<Value*>(found) = std::move(value);
  } else {
    items.emplace_back(key, std::move(value));
  }
}

std::vector<const Value*> bind(const char* function, const Arguments& arguments,
                               const std::vector<const char*>& names, size_t required) {
  std::vector<const Value*> bound(names.size(), nullptr);
  if (arguments.positional.size() > names.size()) {
    throw TemplateError(std::string(function) + " takes at most " + std::to_string(names.size()) +
                        " arguments (" + std::to_string(arguments.positional.size()) + " given)");
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) bound[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) {
      throw TemplateError(std::string(function) + " has no argument " + quoted(name));
    }
    const Value*& slot = bound[static_cast<size_t>(at - names.begin())];
    if (slot != nullptr) {
      throw TemplateError(std::string(function) + " has two values for " + quoted(name));
    }
    slot = &value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (bound[i] == nullptr) {
      throw TemplateError(std::string(function) + " misses the argument '" + names[i] + "'");
    }
  }
  return bound;
}

}  // namespace hearth::jinja
