// Typed access to the keys of a config.json. Checks the type and limits of every number. Messages
// name the file, key, value and what was expected.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace hearth {

class ConfigReader {
 public:
  /// Reads keys of `object`; messages call it `source`. Both must outlive this reader. Input error
  /// if `object` is not a JSON object.
  ConfigReader(const Json& object, const std::string& source);

  /// The member; nullptr if it is absent or null. null counts as absent.
  const Json* find(std::string_view key) const;

  // For the few keys where null and absent differ.
  bool is_null(std::string_view key) const;
  bool is_absent(std::string_view key) const { return object_.find(key) == nullptr; }

  // The checked value of a key. Input error if it is wrong, or if it is absent and there is no
  // `fallback`.
  int64_t integer(std::string_view key, int64_t min, int64_t max) const;
  int64_t integer(std::string_view key, int64_t min, int64_t max, int64_t fallback) const;
  double number(std::string_view key, double min, double max) const;
  double number(std::string_view key, double min, double max, double fallback) const;
  bool boolean(std::string_view key, bool fallback) const;
  std::string text(std::string_view key) const;
  std::string text(std::string_view key, const std::string& fallback) const;

  /// Raises the input error "config.json: KEY is VALUE: " + what.
  [[noreturn]] void refuse(std::string_view key, const std::string& what) const;

 private:
  const Json& required(std::string_view key) const;
  int64_t checked_integer(std::string_view key, const Json& value, int64_t min, int64_t max) const;
  double checked_number(std::string_view key, const Json& value, double min, double max) const;

  const Json& object_;
  const std::string& source_;
};

/// eos_token_id of a config.json or generation_config.json: one id, a list of ids, or absent.
std::vector<int64_t> read_eos_ids(const Json& config, const std::string& source);

}  // namespace hearth
