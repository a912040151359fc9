#include "jinja/filters.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "jinja/format.h"
#include "jinja/json.h"
#include "jinja/operators.h"
#include "jinja/sequences.h"
#include "jinja/unicode.h"

namespace hearth::jinja {
namespace {

std::string json_text(const Value& value, const char* what) {
  return value.is_int()
             ? std::string(static_cast<size_t>(std::clamp<int64_t>(value.as_int(), 0, 1000)), ' ')
             : text_of(value, what);
}

Value filter_tojson(Evaluator&, const Value& input, const Arguments& arguments) {
  const auto bound =
      bind("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii = truth_or(bound[0], false);
  if (is_given(bound[1])) {
    style.indent = json_text(*bound[1], "tojson: indent");
    style.between = ",";
  }
  if (is_given(bound[2])) {
    const Values separators = iterate(*bound[2]);
    if (separators.size() != 2) fail("tojson: separators: expected two texts");
    style.between = text_of(separators[0], "tojson: separators");
    style.colon = text_of(separators[1], "tojson: separators");
  }
  style.sorted = truth_or(bound[3], false);
  return to_json(input, style);
}

Value filter_default(Evaluator&, const Value& input, const Arguments& arguments) {
  const auto bound = bind("default", arguments, {"default_value", "boolean"});
  const bool absent = input.is_undefined() || (truth_or(bound[1], false) && !input.truth());
  return absent ? value_or(bound[0], "") : input;
}

Value filter_length(Evaluator&, const Value& input, const Arguments& arguments) {
  bind("length", arguments, {});
  return length_of(input);
}

Value filter_abs(Evaluator&, const Value& input, const Arguments& arguments) {
  bind("abs", arguments, {});
  require_defined(input);
  if (input.is_float()) return std::fabs(input.as_double());
  if (input.is_big()) return input.digits()[0] == '-' ? negated(input) : input;
  return integer_of(input, "abs") < 0 ? negated(input) : Value(input.as_int());
}

// Python's int(text, base): white space around, a sign, a prefix, single underscores.
std::optional<int64_t> parse_int(std::string_view text, int base) {
  text.remove_prefix(leading_space(text));
  text.remove_suffix(trailing_space(text));
  std::string digits;
  if (text.starts_with('-') || text.starts_with('+')) {
    if (text[0] == '-') digits += '-';
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;  // one sign
  }
  if (text.size() > 2 && text[0] == '0') {
    const char mark = static_cast<char>(text[1] | 0x20);
    const int of_mark = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (of_mark != 0 && (base == 0 || base == of_mark)) {
      base = of_mark;
      text.remove_prefix(2);
      if (text.starts_with('_')) text.remove_prefix(1);
    }
  }
  if (base == 0) base = 10;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool gap = text[i] == '_' && i > 0 && i + 1 < text.size() && text[i - 1] != '_';
    if (!gap) digits += text[i];
  }
  int64_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (read.ec == std::errc::result_out_of_range) fail("int: an integer beyond 64 bits");
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// Of a number beyond doubles: whether it is too small, by the place of its first digit that is not 0.
bool is_tiny(std::string_view digits) {
  const size_t mark = std::min(digits.find_first_of("eE"), digits.size());
  const size_t point = std::min(digits.find('.'), mark);
  const size_t first = digits.find_first_of("123456789");
  std::string_view exponent = digits.substr(std::min(mark + 1, digits.size()));
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  int64_t power = 0;
  const auto read = std::from_chars(exponent.data(), exponent.data() + exponent.size(), power);
  if (read.ec == std::errc::result_out_of_range) return exponent.starts_with('-');
  return static_cast<int64_t>(point) - static_cast<int64_t>(first) + power < 0;
}

std::optional<double> parse_float(std::string_view text) {
  text.remove_prefix(leading_space(text));
  text.remove_suffix(trailing_space(text));
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '9';
    };
    const bool gap = text[i] == '_' && i > 0 && digit(i - 1) && digit(i + 1);
    if (!gap) digits += text[i];
  }
  std::string word = to_lower(digits);
  if (word.starts_with('-')) word.erase(0, 1);
  if (word == "nan" || word == "inf" || word == "infinity") {
    const double value = word == "nan" ? std::nan("") : HUGE_VAL;
    return digits[0] == '-' ? -value : value;
  }
  if (digits.find_first_not_of("+-.0123456789eE") != std::string::npos) return std::nullopt;
  double value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (read.ptr != digits.data() + digits.size() || digits.empty()) return std::nullopt;
  if (read.ec == std::errc::result_out_of_range) {
    return (digits[0] == '-' ? -1 : 1) * (is_tiny(digits) ? 0.0 : HUGE_VAL);
  }
  return value;
}

Value truncated(double value, const Value& absent) {
  if (!std::isfinite(value)) return absent;
  if (std::fabs(value) >= 9.2e18) fail("int: a number beyond 64 bits");
  return static_cast<int64_t>(value);
}

Value filter_int(Evaluator&, const Value& input, const Arguments& arguments) {
  const auto bound = bind("int", arguments, {"default", "base"});
  const Value absent = value_or(bound[0], 0);
  require_defined(input);
  if (input.is_integral()) return input.as_int();
  if (input.is_big()) return input;
  if (input.is_float()) {
    if (std::isinf(input.as_double())) fail("int: cannot convert infinity");
    return truncated(input.as_double(), absent);
  }
  if (!input.is_string()) return absent;
  charge_bytes(input.bytes().size());
  const int64_t base = bound[1] != nullptr ? integer_of(*bound[1], "int: base") : 10;
  if (base != 0 && base != 2 && base != 8 && base != 10 && base != 16) {
    fail("int: expected a base of 2, 8, 10 or 16");
  }
  if (const auto value = parse_int(input.bytes(), static_cast<int>(base))) return *value;
  const auto value = parse_float(input.bytes());
  return value ? truncated(*value, absent) : absent;
}

Value filter_float(Evaluator&, const Value& input, const Arguments& arguments) {
  const auto bound = bind("float", arguments, {"default"});
  require_defined(input);
  if (input.is_number()) return input.as_double();
  const auto value = input.is_string() ? parse_float(input.bytes()) : std::nullopt;
  return value ? Value(*value) : value_or(bound[0], 0.0);
}

// round(x, digits) to the nearest, halves to even, decided by the exact value of the double.
double rounded(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 22) return value;
  if (digits < -308) return std::copysign(0.0, value);
  if (digits >= 0) {
    const Value text = format_percent("%." + std::to_string(digits) + "f", Value(value));
    double result = 0;
    std::from_chars(text.bytes().data(), text.bytes().data() + text.bytes().size(), result);
    return result;
  }
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(value / unit) * unit;
}

Value filter_round(Evaluator&, const Value& input, const Arguments& arguments) {
  const auto bound = bind("round", arguments, {"precision", "method"});
  const int64_t digits = bound[0] != nullptr ? integer_of(*bound[0], "round") : 0;
  const std::string method = bound[1] != nullptr ? text_of(*bound[1], "round") : "common";
  require_defined(input);
  if (!input.is_number()) fail("round: expected a number, found " + input.type_name());
  if (method != "common" && method != "ceil" && method != "floor") {
    fail("round: expected the method common, ceil or floor");
  }
  if (method == "common") {
    if (input.is_float()) return rounded(input.as_double(), digits);
    if (digits >= 0 && input.is_big()) return input;
    if (digits >= 0) return input.as_int();
    integer_of(input, "round to tens");
    return static_cast<int64_t>(rounded(input.as_double(), digits));
  }
  if (!std::isfinite(input.as_double())) fail("round: expected a finite number");
  const Value power = arithmetic("**", Value(10), Value(digits));
  const Value scaled = arithmetic("*", input, power);
  const double whole =
      method == "ceil" ? std::ceil(scaled.as_double()) : std::floor(scaled.as_double());
  return whole / power.as_double();
}

constexpr NamedFilter kNumbers[] = {
    {"tojson", filter_tojson}, {"default", filter_default}, {"d", filter_default},
    {"length", filter_length}, {"count", filter_length},    {"abs", filter_abs},
    {"int", filter_int},       {"float", filter_float},     {"round", filter_round},
};

}  // namespace

std::span<const NamedFilter> number_filters() { return kNumbers; }

Filter find_filter(std::string_view name) {
  for (const auto table :
       {text_filters(), sequence_filters(), sorting_filters(), number_filters()}) {
    for (const NamedFilter& each : table) {
      if (each.name == name) return each.filter;
    }
  }
  return nullptr;
}

Value attribute_path(Evaluator& e, const Value& item, const Value* attribute, const Value* absent) {
  if (!is_given(attribute)) return item;
  Value value = item;
  const auto step = [&](const Value& part) {
    value = e.item(value, part);
    if (value.is_undefined() && is_given(absent)) value = *absent;
  };
  if (!attribute->is_string()) {
    step(*attribute);
    return value;
  }
  std::string_view rest = attribute->bytes();
  while (true) {
    const size_t dot = rest.find('.');
    const std::string part(rest.substr(0, dot));
    const bool digits = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    step(digits ? Value(parse_int(part, 10).value_or(0)) : Value(part));
    if (dot == std::string_view::npos) return value;
    rest.remove_prefix(dot + 1);
  }
}

}  // namespace hearth::jinja
