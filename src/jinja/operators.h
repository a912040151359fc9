// Operators of expressions, as Python has them.
#pragma once

#include <string>
#include <string_view>

#include "jinja/value.h"

namespace hearth::jinja {

[[noreturn]] void fail(const std::string& message);
/// Refuses an undefined value as Jinja does: "'x' is undefined".
void require_defined(const Value& value);

bool equal(const Value& a, const Value& b);
/// -1, 0, 1; 2 for a not-a-number. TemplateError for what has no order.
int compare(const Value& a, const Value& b, std::string_view op);
bool contains(const Value& container, const Value& item);
/// a op b of a comparison: == != < <= > >= in, not in.
bool compares(const Value& a, std::string_view op, const Value& b);

/// + - * / // % **. Integers have 64 bits; a result that does not fit is an error. Integers beyond
/// them (from data) are compared and negated, and take % of an integer and arithmetic with floats.
Value arithmetic(std::string_view op, const Value& a, const Value& b);
Value negated(const Value& value);

/// An integer; TemplateError that names `what` otherwise.
int64_t integer_of(const Value& value, const char* what);
const std::string& text_of(const Value& value, const char* what);

}  // namespace hearth::jinja
