// What PEFT understands by a list of names or a regular expression in adapter_config.json.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/pattern.h"

namespace hearth {

/// A pattern on whole names, as Python's re.fullmatch. Input errors, naming `where`: no valid
/// pattern, one that is too long, one whose backtracking does not end soon.
class NameRegex {
 public:
  NameRegex(const std::string& pattern, const std::string& where);
  bool matches(std::string_view name) const;

 private:
  Pattern pattern_;
};

/// Names in a list select what is called so or ends in a dot and them; a string is a pattern on
/// whole names. Nothing or an empty list selects nothing.
class NameRule {
 public:
  NameRule() = default;
  /// Input error naming `where` for anything else than nothing, a string, a list of strings.
  NameRule(const Json* value, const std::string& where);
  explicit NameRule(std::unordered_set<std::string> names) : names_(std::move(names)) {}

  bool matches(std::string_view name) const;
  bool empty() const { return names_.empty() && !regex_; }
  bool is_regex() const { return regex_ != nullptr; }
  const std::unordered_set<std::string>& names() const { return names_; }

 private:
  std::unordered_set<std::string> names_;
  std::shared_ptr<const NameRegex> regex_;
};

/// rank_pattern and alpha_pattern: the value of the first key that matches a name or what follows
/// one of its dots.
class ValuePattern {
 public:
  ValuePattern() = default;
  /// Values are numbers above 0, `whole` ones if asked. Input errors name `where` and the key.
  ValuePattern(const Json* value, bool whole, const std::string& where);
  const double* find(std::string_view name) const;
  size_t size() const { return entries_.size(); }
  bool has(double value) const;

 private:
  std::vector<std::pair<NameRegex, double>> entries_;
};

}  // namespace hearth
