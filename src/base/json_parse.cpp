// Reading: nlohmann's SAX parser finds the tokens, the rules of json.h are kept here.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/json_parse.h"
#include "base/utf8.h"

namespace hearth {
namespace {

// Walks the text and tells how far the parser has read: events of a SAX parser carry no position.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }

 private:
  const char* at_;
  const char** furthest_;
};

// Where a text comes from.
struct Source {
  std::string name;
  int64_t line = 0;  // of the name, that the text begins in; 0: the text is all of it
};

[[noreturn]] void refuse(std::string_view text, size_t offset, const Source& source,
                         const std::string& reason) {
  const std::string_view before = text.substr(0, offset);
  const auto line =
      std::max<int64_t>(source.line, 1) + std::count(before.begin(), before.end(), '\n');
  const size_t line_start =
      before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  throw input_error(source.name + (source.line > 0 ? ":" : ": line ") + std::to_string(line) +
                    (source.line > 0 ? ": column " : ", column ") +
                    std::to_string(offset - line_start + 1) + ": " + reason);
}

// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ...; last
// read: '...'" without its number, its position (ours counts alike for all errors) and its quote
// (of unbounded length).
std::string reason_of(const std::string& what) {
  const size_t colon = what.find(": ");
  std::string reason = what.substr(colon == std::string::npos ? 0 : colon + 2);
  const size_t quote = reason.find("; last read");
  const size_t expected = reason.find("; expected");
  if (quote != std::string::npos) {
    reason = reason.substr(0, quote) +
             (expected != std::string::npos && expected > quote ? reason.substr(expected) : "");
  }
  return reason;
}

// Numbers come as long doubles: an integer of 4300 digits is one, and no double.
using Parser =
    nlohmann::basic_json<std::map, std::vector, std::string, bool, int64_t, uint64_t, long double>;

class Builder final : public nlohmann::json_sax<Parser> {
 public:
  Builder(std::string_view text, const Source& source, JsonLimits limits)
      : text_(text), source_(source), limits_(limits) {}

  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(Json(value)); }
  bool number_integer(int64_t value) override { return add(Json(value)); }
  bool number_unsigned(uint64_t value) override { return add(Json(value)); }
  bool number_float(long double, const std::string& digits) override {
    // The lexer falls back to a float if an integer does not fit: that would lose digits.
    if (is_integral(digits)) {
      if (digits.size() - (digits[0] == '-' ? 1 : 0) > kMaxIntegerDigits) refuse_long_integer();
      return add(Json(BigInteger{digits}));
    }
    const double value = std::strtod(digits.c_str(), nullptr);
    if (!std::isfinite(value)) refuse_here("the number is too large for a double");
    return add(Json(value));
  }
  bool string(std::string& value) override { return add(Json(std::move(value))); }
  bool binary(Parser::binary_t&) override { return false; }  // never in text

  bool start_object(size_t) override { return open(Json(JsonObject{})); }
  bool key(std::string& name) override {
    innermost().as_object().emplace_back(std::move(name), Json());
    return true;
  }
  bool end_object() override {
    refuse_duplicates(innermost().as_object());
    open_.pop_back();
    return true;
  }
  bool start_array(size_t) override { return open(Json(JsonArray{})); }
  bool end_array() override {
    open_.pop_back();
    return true;
  }

  bool parse_error(size_t position, const std::string& token,
                   const nlohmann::json::exception& error) override {
    if (error.id == 406 && is_integral(token)) refuse_long_integer();
    if (error.id == 406) refuse_here("the number is too large for a double");
    refuse(text_, std::min(position > 0 ? position - 1 : 0, text_.size()), source_,
           reason_of(error.what()));
  }

  const char** furthest_slot() { return &furthest_; }
  Json take() { return std::move(root_); }

 private:
  [[noreturn]] void refuse_here(const std::string& reason) const {
    refuse(text_, static_cast<size_t>(furthest_ - text_.data()), source_, reason);
  }

  [[noreturn]] void refuse_long_integer() const {
    refuse_here("an integer of more than " + std::to_string(kMaxIntegerDigits) + " digits");
  }

  static bool is_integral(const std::string& digits) {
    return std::all_of(digits.begin(), digits.end(),
                       [](char c) { return c == '-' || (c >= '0' && c <= '9'); });
  }

  Json& innermost() { return *open_.back(); }

  Json& place(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    if (innermost().is_array()) return innermost().as_array().emplace_back(std::move(value));
    return innermost().as_object().back().second = std::move(value);
  }

  bool add(Json value) {
    place(std::move(value));
    return true;
  }

  // Pointers to open containers stay valid: only the innermost one grows.
  bool open(Json container) {
    if (open_.size() >= static_cast<size_t>(limits_.depth)) {
      refuse_here("nested deeper than " + std::to_string(limits_.depth) + " levels");
    }
    open_.push_back(&place(std::move(container)));
    return true;
  }

  // Sorted pointers: no hash that an attacker could make collide.
  void refuse_duplicates(const JsonObject& object) const {
    std::vector<std::string_view> keys;
    keys.reserve(object.size());
    for (const auto& member : object) keys.push_back(member.first);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end()) refuse_here("duplicate key " + quoted(*twice));
  }

  std::string_view text_;
  const Source& source_;
  JsonLimits limits_;
  Json root_;
  std::vector<Json*> open_;
  const char* furthest_ = text_.data();
};

Json parse(std::string_view text, const Source& source, JsonLimits limits) {
  if (text.starts_with("\xef\xbb\xbf")) {
    refuse(text, 0, source, "starts with a byte order mark; save it as UTF-8 without one");
  }
  // The parser takes a NUL byte for the end of the text.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    refuse(text, nul, source, "a NUL byte");
  }
  if (const size_t bad = find_invalid_utf8(text); bad != std::string_view::npos) {
    refuse(text, bad, source, "invalid UTF-8");
  }
  Builder builder(text, source, limits);
  const CountingIterator begin(text.data(), builder.furthest_slot());
  const CountingIterator end(text.data() + text.size(), builder.furthest_slot());
  Parser::sax_parse(begin, end, &builder);
  return builder.take();
}

}  // namespace

Json parse_json(std::string_view text, const std::string& source, JsonLimits limits) {
  return parse(text, {source}, limits);
}

Json parse_json_at(std::string_view text, const std::string& file, int64_t line,
                   JsonLimits limits) {
  return parse(text, {file, line}, limits);
}

}  // namespace hearth
