#include "peft/rules.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace hearth {
namespace {

constexpr size_t kMaxPattern = 4096;      // bytes
constexpr uint32_t kMatchLimit = 20'000;  // backtracks for a name
constexpr uint32_t kDepthLimit = 1000;
constexpr double kMaxValue = 1e9;
constexpr size_t kMaxKeys = 10'000;

struct CodeFree {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct DataFree {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct ContextFree {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

}  // namespace

struct NameRegex::Code {
  std::unique_ptr<pcre2_code, CodeFree> code;
  std::unique_ptr<pcre2_match_data, DataFree> data;
  std::unique_ptr<pcre2_match_context, ContextFree> context;
  std::string pattern, where;
};

NameRegex::NameRegex(const std::string& pattern, const std::string& where) {
  if (pattern.size() > kMaxPattern) {
    throw input_error(where + ": a pattern of more than " + std::to_string(kMaxPattern) +
                      " bytes: " + quoted(pattern));
  }
  int error = 0;
  PCRE2_SIZE offset = 0;
  auto made = std::make_shared<Code>();
  made->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                 PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_UTF, &error, &offset,
                                 nullptr));
  if (!made->code) {
    throw input_error(where + ": no regular expression: " + quoted(pattern) + " (at character " +
                      std::to_string(offset) + ")");
  }
  made->data.reset(pcre2_match_data_create(1, nullptr));
  made->context.reset(pcre2_match_context_create(nullptr));
  HEARTH_CHECK(made->data && made->context, "memory for matching");
  pcre2_set_match_limit(made->context.get(), kMatchLimit);
  pcre2_set_depth_limit(made->context.get(), kDepthLimit);
  made->pattern = pattern;
  made->where = where;
  code_ = std::move(made);
}

bool NameRegex::matches(std::string_view name) const {
  const int result = pcre2_match(code_->code.get(), reinterpret_cast<PCRE2_SPTR>(name.data()),
                                 name.size(), 0, 0, code_->data.get(), code_->context.get());
  if (result >= 0) return true;
  if (result == PCRE2_ERROR_NOMATCH) return false;
  throw input_error(code_->where + ": the pattern " + quoted(code_->pattern) +
                    " takes too many steps on " + quoted(name));
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
