#include "jinja/operators.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "jinja/format.h"
#include "jinja/meter.h"
#include "jinja/sequences.h"
#include "jinja/unicode.h"
#include "jinja/write.h"

namespace hearth::jinja {
namespace {

[[noreturn]] void refuse_types(std::string_view op, const Value& a, const Value& b) {
  require_defined(a);
  require_defined(b);
  fail("unsupported types for " + std::string(op) + ": " + a.type_name() + " and " + b.type_name());
}

int64_t floor_divide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

double float_modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

double float_floor_divide(double a, double b) {
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

int64_t integer_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (true) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) break;
    exponent >>= 1;
    if (exponent == 0) return result;
    if (__builtin_mul_overflow(base, base, &base)) break;
  }
  fail("an integer that does not fit 64 bits");
}

Value integer_arithmetic(std::string_view op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  if (op == "+") overflow = __builtin_add_overflow(a, b, &result);
  if (op == "-") overflow = __builtin_sub_overflow(a, b, &result);
  if (op == "*") overflow = __builtin_mul_overflow(a, b, &result);
  if (op == "//" || op == "%") {
    if (b == 0) fail("division by zero");
    if (b == -1) return op == "%" ? Value(int64_t{0}) : integer_arithmetic("*", a, -1);
    result = op == "//" ? floor_divide(a, b) : a - floor_divide(a, b) * b;
  }
  if (overflow) fail("an integer that does not fit 64 bits");
  return result;
}

Value float_arithmetic(std::string_view op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "**") {
    if (a == 0 && b < 0) fail("0.0 cannot be raised to a negative power");
    const double power = std::pow(a, b);
    if (std::isnan(power) && !std::isnan(a) && !std::isnan(b))
      fail("complex numbers are not supported");
    if (std::isinf(power) && !std::isinf(a) && !std::isinf(b)) fail("a number that is too large");
    return power;
  }
  if (b == 0) fail("division by zero");
  if (op == "/") return a / b;
  return op == "//" ? float_floor_divide(a, b) : float_modulo(a, b);
}

// The digits of an integer, big or not.
std::string digits_of(const Value& value) {
  return value.is_big() ? value.digits() : std::to_string(value.as_int());
}

int sign_of_digits(std::string_view digits) { return digits[0] == '-' ? -1 : digits != "0"; }

// The order of integers by their digits.
int compare_digits(std::string_view a, std::string_view b) {
  const int sign = sign_of_digits(a);
  if (sign != sign_of_digits(b)) return sign < sign_of_digits(b) ? -1 : 1;
  if (a.size() != b.size()) return a.size() < b.size() ? -sign : sign;
  const int order = a.compare(b);
  return order == 0 ? 0 : order < 0 ? -sign : sign;
}

// A big integer against a float, exactly as Python compares them; 2 if there is no order. A float
// of that size has no fraction.
int compare_with_float(const std::string& integer, double value) {
  if (std::isnan(value)) return 2;
  if (std::isinf(value)) return value > 0 ? -1 : 1;
  const double floor = std::floor(value);
  std::array<char, 320> text;  // every digit of the largest double
  const int length = std::snprintf(text.data(), text.size(), "%.0f", floor == 0 ? 0.0 : floor);
  return compare_digits(integer, {text.data(), static_cast<size_t>(length)});
}

// Of numbers with a big integer among them.
int compare_big(const Value& a, const Value& b) {
  charge_bytes((a.is_big() ? a.digits().size() : 0) + (b.is_big() ? b.digits().size() : 0));
  if (b.is_float()) return compare_with_float(digits_of(a), b.as_double());
  if (a.is_float()) {
    const int order = compare_with_float(digits_of(b), a.as_double());
    return order == 2 ? 2 : -order;
  }
  return compare_digits(digits_of(a), digits_of(b));
}

__extension__ using Wide = __int128;

// digits % b with the sign of b.
int64_t big_modulo(std::string_view digits, int64_t b) {
  if (b == 0) fail("division by zero");
  const bool negative = digits[0] == '-';
  const Wide size = b < 0 ? -static_cast<Wide>(b) : static_cast<Wide>(b);
  Wide rest = 0;
  for (const char digit : digits.substr(negative ? 1 : 0))
    rest = (rest * 10 + (digit - '0')) % size;
  if (negative) rest = -rest;
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  return static_cast<int64_t>(rest);
}

Value big_arithmetic(std::string_view op, const Value& a, const Value& b) {
  charge_bytes((a.is_big() ? a.digits().size() : 0) + (b.is_big() ? b.digits().size() : 0));
  if (op == "%" && a.is_big() && b.is_integral()) return big_modulo(a.digits(), b.as_int());
  fail("arithmetic on an integer beyond 64 bits (" + std::string(op) + ") is not supported");
}

Value number_arithmetic(std::string_view op, const Value& a, const Value& b) {
  if ((a.is_big() || b.is_big()) && !a.is_float() && !b.is_float()) {
    return big_arithmetic(op, a, b);
  }
  const bool integers = a.is_integral() && b.is_integral();
  if (integers && op == "**" && b.as_int() >= 0) return integer_power(a.as_int(), b.as_int());
  if (integers && op != "/" && op != "**") return integer_arithmetic(op, a.as_int(), b.as_int());
  return float_arithmetic(op, a.as_double(), b.as_double());
}

Value joined_texts(const String& a, const String& b) {
  charge_bytes(a.bytes.size() + b.bytes.size());
  if (!a.safe && !b.safe) return a.bytes + b.bytes;
  return Value::safe((a.safe ? a.bytes : escaped(a.bytes)) + (b.safe ? b.bytes : escaped(b.bytes)));
}

Value repeated(const Value& value, int64_t times) {
  const int64_t length =
      value.is_string() ? int64_t(value.bytes().size()) : int64_t(value.as_list().items.size());
  if (times <= 0 || length == 0) times = 0;
  if (times > 0 && length > (int64_t{1} << 30) / times) fail("a repetition that is too long");
  if (value.is_string()) {
    charge_bytes(static_cast<size_t>(length * times));
    std::string text;
    check_growing(static_cast<size_t>(length * times));  // known before the memory is taken
    for (int64_t i = 0; i < times; ++i) text += value.bytes();
    return value.as_string().safe ? Value::safe(std::move(text)) : Value(std::move(text));
  }
  charge_values(static_cast<size_t>(length * times));
  Values items;
  for (int64_t i = 0; i < times; ++i) {
    items.insert(items.end(), value.as_list().items.begin(), value.as_list().items.end());
  }
  return Value::list(std::move(items), value.as_list().kind);
}

bool is_list_or_tuple(const Value& value) {
  return value.is_list(ListKind::list) || value.is_list(ListKind::tuple);
}

bool equal_items(const Values& a, const Values& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!equal(a[i], b[i])) return false;
  }
  return true;
}

bool is_view(const Value& value) {
  return value.is_list(ListKind::keys) || value.is_list(ListKind::items);
}

// As sets: what a dict holds is there once.
bool equal_views(const Value& a, const Value& b) {
  const Values& items = a.as_list().items;
  return items.size() == b.as_list().items.size() &&
         std::all_of(items.begin(), items.end(),
                     [&](const Value& item) { return contains(b, item); });
}

bool equal_dicts(const Dict& a, const Dict& b) {
  if (a.items.size() != b.items.size()) return false;
  for (const auto& [key, value] : a.items) {
    charge_values(b.items.size() / 8);
    const Value* other = b.find(key);
    if (other == nullptr || !equal(value, *other)) return false;
  }
  return true;
}

}  // namespace

void fail(const std::string& message) { throw TemplateError(message); }

void require_defined(const Value& value) {
  if (value.is_undefined()) fail(value.why());
}

bool equal(const Value& a, const Value& b) {
  charge(1);
  if (a.is_number() && b.is_number()) {
    if (a.is_big() || b.is_big()) return compare_big(a, b) == 0;
    if (a.is_integral() && b.is_integral()) return a.as_int() == b.as_int();
    return a.as_double() == b.as_double();
  }
  if (a.is_string() && b.is_string()) {
    charge_bytes(std::min(a.bytes().size(), b.bytes().size()));
    return a.bytes() == b.bytes();
  }
  if (a.is_list() && b.is_list()) {
    if (a.same_as(b)) return true;
    if (is_view(a) && is_view(b)) return equal_views(a, b);
    return a.as_list().kind == b.as_list().kind && a.as_list().kind <= ListKind::range &&
           equal_items(a.as_list().items, b.as_list().items);
  }
  if (a.is_dict() && b.is_dict()) return a.same_as(b) || equal_dicts(a.as_dict(), b.as_dict());
  return a.same_as(b);
}

int compare(const Value& a, const Value& b, std::string_view op) {
  charge(1);
  if (a.is_number() && b.is_number()) {
    if (a.is_big() || b.is_big()) return compare_big(a, b);
    if (a.is_integral() && b.is_integral()) {
      return a.as_int() < b.as_int() ? -1 : a.as_int() > b.as_int() ? 1 : 0;
    }
    const double x = a.as_double();
    const double y = b.as_double();
    return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
  }
  if (a.is_string() && b.is_string()) {  // UTF-8 is in the order of the code points
    charge_bytes(std::min(a.bytes().size(), b.bytes().size()));
    const int order = a.bytes().compare(b.bytes());
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  if (is_list_or_tuple(a) && is_list_or_tuple(b) && a.as_list().kind == b.as_list().kind) {
    const Values& x = a.as_list().items;
    const Values& y = b.as_list().items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!equal(x[i], y[i])) return compare(x[i], y[i], op);
    }
    return x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0;
  }
  refuse_types(op, a, b);
}

bool contains(const Value& container, const Value& item) {
  if (container.is_string()) {
    if (!item.is_string()) fail("'in' of a text needs a text, not " + item.type_name());
    charge_bytes(container.bytes().size());
    return container.bytes().find(item.bytes()) != std::string::npos;
  }
  if (container.is_dict()) {
    if ((item.is_list() && !item.is_list(ListKind::tuple)) || item.is_dict()) {
      fail("unhashable type: '" + item.type_name() + "'");
    }
    charge_values(container.as_dict().items.size() / 8);
    return container.as_dict().find(item) != nullptr;
  }
  for (const Value& each : iterate(container)) {
    if (each.same_as(item) || equal(each, item)) return true;
  }
  return false;
}

bool compares(const Value& a, std::string_view op, const Value& b) {
  if (op == "==") return equal(a, b);
  if (op == "!=") return !equal(a, b);
  if (op == "in") return contains(b, a);
  if (op == "not in") return !contains(b, a);
  const int order = compare(a, b, op);
  if (order == 2) return false;
  if (op == "<") return order < 0;
  if (op == "<=") return order <= 0;
  return op == ">" ? order > 0 : order >= 0;
}

Value arithmetic(std::string_view op, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return number_arithmetic(op, a, b);
  if (op == "%" && a.is_string()) return format_percent(a.bytes(), b);
  if (op == "+" && a.is_string() && b.is_string())
    return joined_texts(a.as_string(), b.as_string());
  if (op == "+" && is_list_or_tuple(a) && is_list_or_tuple(b) &&
      a.as_list().kind == b.as_list().kind) {
    charge_values(a.as_list().items.size() + b.as_list().items.size());
    Values items = a.as_list().items;
    items.insert(items.end(), b.as_list().items.begin(), b.as_list().items.end());
    return Value::list(std::move(items), a.as_list().kind);
  }
  if (op == "*" && b.is_integral() && (a.is_string() || is_list_or_tuple(a))) {
    return repeated(a, b.as_int());
  }
  if (op == "*" && a.is_integral() && (b.is_string() || is_list_or_tuple(b))) {
    return repeated(b, a.as_int());
  }
  refuse_types(op, a, b);
}

Value negated(const Value& value) {
  require_defined(value);
  if (value.is_float()) return -value.as_double();
  if (value.is_big()) {
    const std::string& digits = value.digits();
    charge_bytes(digits.size());
    return Value::integer(digits[0] == '-' ? digits.substr(1) : "-" + digits);
  }
  if (!value.is_integral()) fail("bad type for unary -: " + value.type_name());
  return integer_arithmetic("-", 0, value.as_int());
}

int64_t integer_of(const Value& value, const char* what) {
  require_defined(value);
  if (value.is_big()) fail(std::string(what) + ": an integer beyond 64 bits");
  if (!value.is_integral()) {
    fail(std::string(what) + ": expected an integer, found " + value.type_name());
  }
  return value.as_int();
}

const std::string& text_of(const Value& value, const char* what) {
  require_defined(value);
  if (!value.is_string()) fail(std::string(what) + ": expected a text, found " + value.type_name());
  return value.bytes();
}

}  // namespace hearth::jinja
