// Iterating, counting, indexing and slicing values.
#pragma once

#include <cstdint>
#include <optional>

#include "jinja/value.h"

namespace hearth::jinja {

/// The items of a loop over the value: characters of a text, keys of a dict. Consumes a generator.
Values iterate(const Value& value);
/// len(); TemplateError for a value without a length.
int64_t length_of(const Value& value);

/// value[begin:end:step]; an absent bound is null.
Value slice(const Value& value, const Value* begin, const Value* end, const Value* step);
/// value[index] of a text or a list; null for an index out of range.
std::optional<Value> item_at(const Value& value, int64_t index);
/// The single character of a text.
Value character_at(const String& text, size_t character);

}  // namespace hearth::jinja
