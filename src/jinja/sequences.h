// What is walked over, counted, indexed and sliced.
#pragma once

#include <cstdint>
#include <optional>

#include "jinja/value.h"

namespace hearth::jinja {

/// The items that a loop walks over; a generator is used up. Characters of a text, keys of a dict.
Values iterate(const Value& value);
/// len(); TemplateError for what has none.
int64_t length_of(const Value& value);

/// value[begin:end:step], each of them null for an absent one.
Value slice(const Value& value, const Value* begin, const Value* end, const Value* step);
/// value[index] of a text or a list; null for an index out of range.
std::optional<Value> item_at(const Value& value, int64_t index);
/// The single character of a text.
Value character_at(const String& text, size_t character);

}  // namespace hearth::jinja
