// The filters of templates, and helpers of their sources: filters_text.cpp, filters_sequence.cpp,
// filters_sorting.cpp, and filters.cpp for the rest.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "jinja/evaluator.h"

namespace hearth::jinja {

using Filter = Value (*)(Evaluator&, const Value& input, const Arguments& arguments);

/// The filter of this name, or null.
Filter find_filter(std::string_view name);

struct NamedFilter {
  std::string_view name;
  Filter filter;
};

/// One table per source file. find_filter searches them all.
std::span<const NamedFilter> text_filters();
std::span<const NamedFilter> sequence_filters();
std::span<const NamedFilter> sorting_filters();
std::span<const NamedFilter> number_filters();

/// The argument, or its default if it is absent.
inline Value value_or(const Value* given, Value absent) {
  return given != nullptr ? *given : std::move(absent);
}
inline bool truth_or(const Value* given, bool absent) {
  return given != nullptr ? given->truth() : absent;
}
inline bool is_given(const Value* value) { return value != nullptr && !value->is_none(); }

/// item.a.b.0 for the attribute "a.b.0" or a number; the item itself if `attribute` is null.
/// `absent` replaces an undefined value on the path.
Value attribute_path(Evaluator& e, const Value& item, const Value* attribute,
                     const Value* absent = nullptr);

}  // namespace hearth::jinja
