// Private to the filters: what several of them share.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "jinja/evaluator.h"
#include "jinja/tables.h"

namespace hearth::jinja {

/// The tables of the files, which find_filter looks through.
std::span<const NamedFilter> text_filters();
std::span<const NamedFilter> sequence_filters();
std::span<const NamedFilter> sorting_filters();
std::span<const NamedFilter> number_filters();

/// The argument, or its default where it is not given.
inline Value value_or(const Value* given, Value absent) {
  return given != nullptr ? *given : std::move(absent);
}
inline bool truth_or(const Value* given, bool absent) {
  return given != nullptr ? given->truth() : absent;
}
inline bool is_given(const Value* value) { return value != nullptr && !value->is_none(); }

/// item.a.b.0 for the attribute "a.b.0" or a number; the item itself without one. `absent` stands
/// for what is undefined on the way.
Value attribute_path(Evaluator& e, const Value& item, const Value* attribute,
                     const Value* absent = nullptr);

}  // namespace hearth::jinja
