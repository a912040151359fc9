// How PEFT matches the lists of names and regular expressions in adapter_config.json.
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

/// A pattern on whole names, like Python's re.fullmatch. Input error, naming `where`, if the
/// pattern is invalid or too long, or needs too much backtracking.
class NameRegex {
 public:
  NameRegex(const std::string& pattern, const std::string& where);
  bool matches(std::string_view name) const;

 private:
  Pattern pattern_;
};

/// A list selects names that equal an entry or end in a dot and an entry. A string is a pattern on
/// whole names. An absent value or an empty list selects nothing.
class NameRule {
 public:
  NameRule() = default;
  /// `value` is null, a string or a list of strings; otherwise input error, naming `where`.
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

/// rank_pattern and alpha_pattern: the value of the first key that matches a name, or the part of
/// the name after one of its dots.
class ValuePattern {
 public:
  ValuePattern() = default;
  /// Values are numbers above 0; with `whole`, integers. Input errors name `where` and the key.
  ValuePattern(const Json* value, bool whole, const std::string& where);
  const double* find(std::string_view name) const;
  size_t size() const { return entries_.size(); }
  bool has(double value) const;

 private:
  std::vector<std::pair<NameRegex, double>> entries_;
};

}  // namespace hearth
