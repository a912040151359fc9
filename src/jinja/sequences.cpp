#include "jinja/sequences.h"

#include <algorithm>

#include "jinja/meter.h"
#include "jinja/operators.h"
#include "jinja/unicode.h"

namespace hearth::jinja {
namespace {

Values characters(const String& text) {
  charge_values(text.bytes.size());
  Values items;
  std::string_view rest = text.bytes;
  while (!rest.empty()) {
    const std::string_view c = first_character(rest);
    items.emplace_back(std::string(c));
    rest.remove_prefix(c.size());
  }
  return items;
}

// Python's slice.indices: begin, end and step for a sequence of this length.
struct Indices {
  int64_t begin, end, step;
};

Indices indices(int64_t length, const Value* begin, const Value* end, const Value* step) {
  const auto given = [](const Value* value) { return value != nullptr && !value->is_none(); };
  Indices at{0, 0, given(step) ? integer_of(*step, "step of a slice") : 1};
  if (at.step == 0) fail("a slice with a step of zero");
  const bool back = at.step < 0;
  const auto clamp = [&](const Value* value, int64_t absent) {
    if (!given(value)) return absent;
    int64_t i = integer_of(*value, "bound of a slice");
    if (i < 0) i = i < -length ? (back ? -1 : 0) : i + length;
    return std::min(i, back ? length - 1 : length);
  };
  at.begin = clamp(begin, back ? length - 1 : 0);
  at.end = clamp(end, back ? -1 : length);
  return at;
}

template <class F>
void each_index(const Indices& at, const F& take) {
  if (at.step > 0) {
    for (int64_t i = at.begin; i < at.end; i += std::min(at.step, at.end - i)) take(i);
  } else {
    for (int64_t i = at.begin; i > at.end; i += std::max(at.step, at.end - i)) take(i);
  }
}

Value slice_text(const String& text, const Value* begin, const Value* end, const Value* step) {
  const auto length =
      static_cast<int64_t>(text.ascii ? text.bytes.size() : count_codes(text.bytes));
  charge_bytes(text.bytes.size());
  const Indices at = indices(length, begin, end, step);
  std::string part;
  if (at.step == 1) {
    if (at.begin < at.end) {
      const auto first = static_cast<size_t>(at.begin);
      const auto count = static_cast<size_t>(at.end - at.begin);
      const size_t from = text.ascii ? first : offset_of(text.bytes, first);
      const std::string_view rest = std::string_view(text.bytes).substr(from);
      part = std::string(rest.substr(0, text.ascii ? count : offset_of(rest, count)));
    }
  } else if (text.ascii) {
    each_index(at, [&](int64_t i) { part += text.bytes[static_cast<size_t>(i)]; });
  } else {
    charge_values(text.bytes.size());
    const std::vector<uint32_t> codes = codes_of(text.bytes);
    each_index(at, [&](int64_t i) { append_code(part, codes[static_cast<size_t>(i)]); });
  }
  return text.safe ? Value::safe(std::move(part)) : Value(std::move(part));
}

}  // namespace

Values iterate(const Value& value) {
  if (value.is_undefined()) return {};
  if (value.is_string()) return characters(value.as_string());
  if (value.is_list()) {
    List& list = value.as_list();
    charge_values(list.items.size());
    if (list.has_length()) return list.items;
    list.used = true;
    return std::exchange(list.items, {});
  }
  if (value.is_dict()) {
    Values keys;
    charge_values(value.as_dict().items.size());
    for (const auto& item : value.as_dict().items) keys.push_back(item.first);
    return keys;
  }
  fail("'" + value.type_name() + "' object is not iterable");
}

int64_t length_of(const Value& value) {
  if (value.is_undefined()) return 0;
  if (value.is_string()) {
    const String& text = value.as_string();
    charge_bytes(text.ascii ? 0 : text.bytes.size());
    return static_cast<int64_t>(text.ascii ? text.bytes.size() : count_codes(text.bytes));
  }
  if (value.is_list() && value.as_list().has_length()) {
    return static_cast<int64_t>(value.as_list().items.size());
  }
  if (value.is_dict()) return static_cast<int64_t>(value.as_dict().items.size());
  fail("object of type '" + value.type_name() + "' has no length");
}

Value character_at(const String& text, size_t character) {
  if (text.ascii) return std::string(1, text.bytes[character]);
  charge_bytes(text.bytes.size());
  const std::string_view rest =
      std::string_view(text.bytes).substr(offset_of(text.bytes, character));
  return std::string(first_character(rest));
}

std::optional<Value> item_at(const Value& value, int64_t index) {
  const int64_t length = length_of(value);
  if (index < 0) index += length;
  if (index < 0 || index >= length) return std::nullopt;
  if (value.is_string()) return character_at(value.as_string(), static_cast<size_t>(index));
  return value.as_list().items[static_cast<size_t>(index)];
}

Value slice(const Value& value, const Value* begin, const Value* end, const Value* step) {
  require_defined(value);
  if (value.is_string()) return slice_text(value.as_string(), begin, end, step);
  if (!value.is_list() || !value.as_list().has_index()) {
    fail("'" + value.type_name() + "' object cannot be sliced");
  }
  const List& list = value.as_list();
  Values items;
  charge_values(list.items.size());
  each_index(indices(static_cast<int64_t>(list.items.size()), begin, end, step),
             [&](int64_t i) { items.push_back(list.items[static_cast<size_t>(i)]); });
  return Value::list(std::move(items), list.kind == ListKind::range ? ListKind::tuple : list.kind);
}

}  // namespace hearth::jinja
