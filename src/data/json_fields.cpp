#include "data/json_fields.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"

namespace hearth {
namespace {

constexpr int64_t kMaxId = (int64_t{1} << 24) - 1;

std::string path_of(const std::string& where, std::string_view key) {
  return where + "." + std::string(key);
}

}  // namespace

std::string shown(const Json& value) {
  if (value.is_array()) return "an array";
  if (value.is_object()) return "an object";
  return quoted(value.is_string() ? value.as_string() : value.dump());
}

void refuse_value(const std::string& where, const Json& value) {
  throw input_error(where + ": " + shown(value) + " is not supported by this version");
}

const Json& member_or_null(const Json& object, std::string_view key) {
  static const Json null;
  const Json* found = object.find(key);
  return found == nullptr ? null : *found;
}

const Json& member(const Json& object, std::string_view key, const std::string& where) {
  const Json* found = object.find(key);
  if (found == nullptr) throw input_error(path_of(where, key) + " is missing");
  return *found;
}

void allow_keys(const Json& object, const std::string& where,
                std::initializer_list<std::string_view> keys) {
  if (!object.is_object())
    throw input_error(where + ": expected an object, found " + shown(object));
  for (const auto& [key, value] : object.as_object()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      throw input_error(where + ": the key " + quoted(key) + " (" + shown(value) +
                        ") is not supported by this version");
    }
  }
}

bool read_bool(const Json& object, std::string_view key, bool absent, const std::string& where) {
  const Json* found = object.find(key);
  if (found == nullptr) return absent;
  if (!found->is_bool()) {
    throw input_error(path_of(where, key) + ": expected true or false, found " + shown(*found));
  }
  return found->as_bool();
}

bool required_bool(const Json& object, std::string_view key, const std::string& where) {
  member(object, key, where);
  return read_bool(object, key, false, where);
}

const std::string& read_string(const Json& object, std::string_view key, const std::string& where) {
  const Json& found = member(object, key, where);
  if (!found.is_string()) {
    throw input_error(path_of(where, key) + ": expected a string, found " + shown(found));
  }
  return found.as_string();
}

std::string read_character(const Json& object, std::string_view key, const std::string& where) {
  const std::string& text = read_string(object, key, where);
  if (text.empty() || decode_utf8(text).length != text.size()) {
    throw input_error(path_of(where, key) + ": expected one character, found " + quoted(text));
  }
  return text;
}

int32_t read_id(const Json& value, const std::string& where) {
  if (!value.is_signed() || value.as_int() < 0 || value.as_int() > kMaxId) {
    throw input_error(where + ": expected an id from 0 to " + std::to_string(kMaxId) + ", found " +
                      shown(value));
  }
  return static_cast<int32_t>(value.as_int());
}

}  // namespace hearth
