// Typed access to the keys of a config.json: every number with its type and limits, every message
// with file, key, value and what was expected.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace hearth {

class ConfigReader {
 public:
  /// The object that keys are looked up in; `source` names it in messages. Both must outlive this.
  /// Input error if `object` is none.
  ConfigReader(const Json& object, const std::string& source);

  /// A member that is there and not null, else nullptr: null counts as absent everywhere.
  const Json* find(std::string_view key) const;

  // Whether the key is there and null, and not there at all, for the few where that differs.
  bool is_null(std::string_view key) const;
  bool is_absent(std::string_view key) const { return object_.find(key) == nullptr; }

  // The value of a key, checked; input errors. Without `fallback` an absent key is one, too.
  int64_t integer(std::string_view key, int64_t min, int64_t max) const;
  int64_t integer(std::string_view key, int64_t min, int64_t max, int64_t fallback) const;
  double number(std::string_view key, double min, double max) const;
  double number(std::string_view key, double min, double max, double fallback) const;
  bool boolean(std::string_view key, bool fallback) const;
  std::string text(std::string_view key) const;
  std::string text(std::string_view key, const std::string& fallback) const;

  /// An input error naming the key and its value: "config.json: KEY is VALUE: " + what.
  [[noreturn]] void refuse(std::string_view key, const std::string& what) const;

 private:
  const Json& required(std::string_view key) const;
  int64_t checked_integer(std::string_view key, const Json& value, int64_t min, int64_t max) const;
  double checked_number(std::string_view key, const Json& value, double min, double max) const;

  const Json& object_;
  const std::string& source_;
};

/// eos_token_id of a config.json or generation_config.json: an id, a list of ids, or nothing.
std::vector<int64_t> read_eos_ids(const Json& config, const std::string& source);

}  // namespace hearth
