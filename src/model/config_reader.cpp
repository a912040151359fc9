#include "model/config_reader.h"

#include <cmath>
#include <limits>

#include "base/error.h"

namespace hearth {

ConfigReader::ConfigReader(const Json& object, const std::string& source)
    : object_(object), source_(source) {
  if (!object.is_object()) throw input_error(source + ": expected a JSON object");
}

const Json* ConfigReader::find(std::string_view key) const {
  const Json* value = object_.find(key);
  return value != nullptr && value->is_null() ? nullptr : value;
}

bool ConfigReader::is_null(std::string_view key) const {
  const Json* value = object_.find(key);
  return value != nullptr && value->is_null();
}

void ConfigReader::refuse(std::string_view key, const std::string& what) const {
  const Json* value = object_.find(key);
  // Names of settings stand bare; what a file invented is quoted, which cuts and escapes it.
  std::string name = quoted(key);
  if (name.substr(1, name.size() - 2) == key) name = key;
  throw input_error(
      source_ + ": " + name +
      (value == nullptr ? std::string(" is missing: ") : " is " + quoted(value->dump()) + ": ") +
      what);
}

const Json& ConfigReader::required(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) refuse(key, "required, and never guessed");
  return *value;
}

int64_t ConfigReader::checked_integer(std::string_view key, const Json& value, int64_t min,
                                      int64_t max) const {
  const std::string expected =
      "expected an integer from " + std::to_string(min) + " to " + std::to_string(max);
  if (!value.is_integer()) refuse(key, expected);
  const bool huge =
      value.as_double() > static_cast<double>(std::numeric_limits<int64_t>::max() / 2);
  if (huge || value.as_int() < min || value.as_int() > max) refuse(key, expected);
  return value.as_int();
}

double ConfigReader::checked_number(std::string_view key, const Json& value, double min,
                                    double max) const {
  const std::string expected =
      "expected a number from " + Json(min).dump() + " to " + Json(max).dump();
  if (!value.is_number()) refuse(key, expected);
  const double number = value.as_double();
  if (!(number >= min && number <= max)) refuse(key, expected);
  return number;
}

int64_t ConfigReader::integer(std::string_view key, int64_t min, int64_t max) const {
  return checked_integer(key, required(key), min, max);
}

int64_t ConfigReader::integer(std::string_view key, int64_t min, int64_t max,
                              int64_t fallback) const {
  const Json* value = find(key);
  return value == nullptr ? fallback : checked_integer(key, *value, min, max);
}

double ConfigReader::number(std::string_view key, double min, double max) const {
  return checked_number(key, required(key), min, max);
}

double ConfigReader::number(std::string_view key, double min, double max, double fallback) const {
  const Json* value = find(key);
  return value == nullptr ? fallback : checked_number(key, *value, min, max);
}

bool ConfigReader::boolean(std::string_view key, bool fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_bool()) refuse(key, "expected true or false");
  return value->as_bool();
}

std::string ConfigReader::text(std::string_view key) const {
  const Json& value = required(key);
  if (!value.is_string()) refuse(key, "expected a string");
  return value.as_string();
}

std::string ConfigReader::text(std::string_view key, const std::string& fallback) const {
  return find(key) == nullptr ? fallback : text(key);
}

std::vector<int64_t> read_eos_ids(const Json& config, const std::string& source) {
  constexpr double kMaxId = 2147483647;
  const ConfigReader reader(config, source);
  const Json* eos = reader.find("eos_token_id");
  std::vector<int64_t> ids;
  if (eos == nullptr) return ids;
  const JsonArray one = {*eos};
  for (const Json& id : eos->is_array() ? eos->as_array() : one) {
    if (!id.is_integer() || std::abs(id.as_double()) > kMaxId) {
      reader.refuse("eos_token_id", "expected a token id or a list of them");
    }
    ids.push_back(id.as_int());
  }
  return ids;
}

}  // namespace hearth
