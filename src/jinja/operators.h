// Operators of expressions, with Python's semantics.
#pragma once

#include <string>
#include <string_view>

#include "jinja/value.h"

namespace hearth::jinja {

[[noreturn]] void fail(const std::string& message);
/// Refuses an undefined value as Jinja does: "'x' is undefined".
void require_defined(const Value& value);

bool equal(const Value& a, const Value& b);
/// Returns -1, 0 or 1; 2 if an operand is NaN. TemplateError if the types have no order.
int compare(const Value& a, const Value& b, std::string_view op);
bool contains(const Value& container, const Value& item);
/// Evaluates a op b, for == != < <= > >= in, not in.
bool compares(const Value& a, std::string_view op, const Value& b);

/// Evaluates a op b, for + - * / // % **. Integers have 64 bits; a result that does not fit is an
/// error. Larger integers (from data) support comparison, negation, % by an integer, and arithmetic
/// with floats.
Value arithmetic(std::string_view op, const Value& a, const Value& b);
Value negated(const Value& value);

/// The value as an integer, or a TemplateError that names `what`.
int64_t integer_of(const Value& value, const char* what);
const std::string& text_of(const Value& value, const char* what);

}  // namespace hearth::jinja
