#include "peft/rules.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace hearth {
namespace {

constexpr size_t kMaxPattern = 4096;      // bytes
constexpr uint32_t kMatchLimit = 20'000;  // backtracks for a name
constexpr uint32_t kDepthLimit = 1000;
constexpr double kMaxValue = 1e9;
constexpr size_t kMaxKeys = 10'000;

}  // namespace

NameRegex::NameRegex(const std::string& pattern, const std::string& where)
    : pattern_(pattern, {Pattern::Use::whole, kMaxPattern}, where) {}

bool NameRegex::matches(std::string_view name) const {
  return pattern_.matches(name, {kMatchLimit, kDepthLimit});
}

NameRule::NameRule(const Json* value, const std::string& where) {
  if (value == nullptr) return;
  if (value->is_string()) {
    regex_ = std::make_shared<NameRegex>(value->as_string(), where);
    return;
  }
  const std::string expected = where + ": expected a list of names or one pattern";
  if (!value->is_array()) throw input_error(expected);
  for (const Json& name : value->as_array()) {
    if (!name.is_string()) throw input_error(expected);
    names_.insert(name.as_string());
  }
}

bool NameRule::matches(std::string_view name) const {
  if (regex_) return regex_->matches(name);
  while (!names_.empty()) {
    if (names_.contains(std::string(name))) return true;
    const size_t dot = name.find('.');
    if (dot == std::string_view::npos) return false;
    name.remove_prefix(dot + 1);
  }
  return false;
}

ValuePattern::ValuePattern(const Json* value, bool whole, const std::string& where) {
  if (value == nullptr) return;
  if (!value->is_object()) throw input_error(where + ": expected an object of numbers");
  if (value->as_object().size() > kMaxKeys) {
    throw input_error(where + ": more than " + std::to_string(kMaxKeys) + " keys");
  }
  for (const auto& [key, number] : value->as_object()) {
    const double of = number.is_number() ? number.as_double() : 0;
    if (!(of > 0 && of <= kMaxValue) || (whole && of != std::floor(of))) {
      throw input_error(where + ": " + quoted(key) + " is " + quoted(number.dump()) +
                        ": expected a" + (whole ? " whole" : "") + " number above 0");
    }
    entries_.emplace_back(NameRegex("(?:.*\\.)?(?:" + key + ")", where), of);
  }
}

bool ValuePattern::has(double value) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const auto& entry) { return entry.second == value; });
}

const double* ValuePattern::find(std::string_view name) const {
  for (const auto& [regex, value] : entries_) {
    if (regex.matches(name)) return &value;
  }
  return nullptr;
}

}  // namespace hearth
