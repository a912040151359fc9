// Filters of lists and mappings that keep the order.
#include <algorithm>

#include "jinja/filters.h"
#include "jinja/operators.h"
#include "jinja/sequences.h"
#include "jinja/unicode.h"

namespace hearth::jinja {
namespace {

Value generator(Values items) { return Value::list(std::move(items), ListKind::generator); }

// What map and select walk over: what is false is nothing, whatever its type.
Values walked(const Value& input) { return input.truth() ? iterate(input) : Values(); }

Value filter_list(Evaluator&, const Value& input, const Arguments& arguments) {
  bind("list", arguments, {});
  return Value::list(iterate(input));
}

Value filter_first(Evaluator&, const Value& input, const Arguments& arguments) {
  bind("first", arguments, {});
  if (input.is_list(ListKind::generator)) {  // only its first item is used up
    Values& items = input.as_list().items;
    if (items.empty()) return Value::undefined("no first item, the sequence was empty");
    Value first = items.front();
    charge_values(items.size() / 8);
    items.erase(items.begin());
    return first;
  }
  const Values items = iterate(input);
  return items.empty() ? Value::undefined("no first item, the sequence was empty") : items.front();
}

Value filter_last(Evaluator&, const Value& input, const Arguments& arguments) {
  bind("last", arguments, {});
  if (input.is_list(ListKind::generator)) fail("'generator' object is not reversible");
  const Values items = iterate(input);
  return items.empty() ? Value::undefined("no last item, the sequence was empty") : items.back();
}

Value filter_reverse(Evaluator&, const Value& input, const Arguments& arguments) {
  bind("reverse", arguments, {});
  if (input.is_string()) {
    std::vector<uint32_t> codes = codes_of(input.bytes());
    charge_values(codes.size());
    std::reverse(codes.begin(), codes.end());
    return text_of(codes);
  }
  Values items = iterate(input);
  std::reverse(items.begin(), items.end());
  if (input.is_list(ListKind::generator)) return Value::list(std::move(items));
  return generator(std::move(items));
}

Value filter_items(Evaluator&, const Value& input, const Arguments& arguments) {
  bind("items", arguments, {});
  if (input.is_undefined()) return generator({});
  if (!input.is_dict()) fail("items: expected a mapping, found " + input.type_name());
  Values pairs;
  charge_values(input.as_dict().items.size());
  for (const auto& [key, value] : input.as_dict().items) {
    pairs.push_back(Value::list({key, value}, ListKind::tuple));
  }
  return generator(std::move(pairs));
}

Value filter_map(Evaluator& e, const Value& input, const Arguments& arguments) {
  Values mapped;
  if (arguments.positional.empty()) {
    const auto bound = bind("map", arguments, {"attribute", "default"}, 1);
    for (const Value& each : walked(input)) {
      mapped.push_back(attribute_path(e, each, bound[0], bound[1]));
    }
    return generator(std::move(mapped));
  }
  const std::string name = text_of(arguments.positional[0], "map: name of a filter");
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin());
  for (const Value& each : walked(input)) mapped.push_back(e.filter(name, each, rest));
  return generator(std::move(mapped));
}

// select and reject judge the item, selectattr and rejectattr an attribute of it.
template <bool by_attribute, bool keep>
Value filter_select(Evaluator& e, const Value& input, const Arguments& arguments) {
  Arguments rest = arguments;
  const auto take = [&] {
    const Value first = rest.positional.front();
    rest.positional.erase(rest.positional.begin());
    return first;
  };
  Value attribute;
  if (by_attribute) {
    if (rest.positional.empty()) fail("selectattr and rejectattr need the name of an attribute");
    attribute = take();
  }
  const bool by_test = !rest.positional.empty();
  const std::string test = by_test ? text_of(take(), "name of a test") : "";
  Values kept;
  for (const Value& each : walked(input)) {
    const Value judged = attribute_path(e, each, &attribute);
    if ((by_test ? e.test(test, judged, rest) : judged.truth()) == keep) kept.push_back(each);
  }
  return generator(std::move(kept));
}

Value filter_batch(Evaluator&, const Value& input, const Arguments& arguments) {
  const auto bound = bind("batch", arguments, {"linecount", "fill_with"}, 1);
  const int64_t count = integer_of(*bound[0], "batch");
  if (count < 1 || count > 100'000) fail("batch: expected a count from 1 to 100000");
  Values batches;
  Values batch;
  for (const Value& each : iterate(input)) {
    if (batch.size() == static_cast<size_t>(count)) {
      batches.push_back(Value::list(std::exchange(batch, {})));
    }
    batch.push_back(each);
  }
  if (!batch.empty()) {
    if (is_given(bound[1])) {
      charge_values(static_cast<size_t>(count));
      batch.resize(static_cast<size_t>(count), *bound[1]);
    }
    batches.push_back(Value::list(std::move(batch)));
  }
  return generator(std::move(batches));
}

Value filter_slice(Evaluator&, const Value& input, const Arguments& arguments) {
  const auto bound = bind("slice", arguments, {"slices", "fill_with"}, 1);
  const int64_t slices = integer_of(*bound[0], "slice");
  if (slices < 1 || slices > 100'000) fail("slice: expected a number from 1 to 100000");
  const Values items = iterate(input);
  charge_values(static_cast<size_t>(slices));
  const auto length = static_cast<int64_t>(items.size());
  Values result;
  int64_t begin = 0;
  for (int64_t i = 0; i < slices; ++i) {
    const bool longer = i < length % slices;
    const int64_t end = begin + length / slices + (longer ? 1 : 0);
    Values part(items.begin() + begin, items.begin() + end);
    if (is_given(bound[1]) && !longer) part.push_back(*bound[1]);
    result.push_back(Value::list(std::move(part)));
    begin = end;
  }
  return generator(std::move(result));
}

Value filter_sum(Evaluator& e, const Value& input, const Arguments& arguments) {
  const auto bound = bind("sum", arguments, {"attribute", "start"});
  Value total = value_or(bound[1], 0);
  if (total.is_string()) fail("sum: texts cannot be summed; use the filter join");
  for (const Value& each : iterate(input)) {
    total = arithmetic("+", total, attribute_path(e, each, bound[0]));
  }
  return total;
}

Value filter_attr(Evaluator& e, const Value& input, const Arguments& arguments) {
  const auto bound = bind("attr", arguments, {"name"}, 1);
  if (input.is_undefined()) require_defined(input);
  const std::string& name = text_of(*bound[0], "attr");
  if (input.is_dict()) {  // methods only: attr does not look at the keys
    auto empty = std::make_shared<Dict>();
    if (e.attribute(Value(empty), name).is_undefined()) {
      return Value::undefined("'dict' object has no attribute '" + name + "'");
    }
  }
  return e.attribute(input, name);
}

constexpr NamedFilter kSequences[] = {
    {"list", filter_list},
    {"first", filter_first},
    {"last", filter_last},
    {"reverse", filter_reverse},
    {"items", filter_items},
    {"map", filter_map},
    {"select", filter_select<false, true>},
    {"reject", filter_select<false, false>},
    {"selectattr", filter_select<true, true>},
    {"rejectattr", filter_select<true, false>},
    {"batch", filter_batch},
    {"slice", filter_slice},
    {"sum", filter_sum},
    {"attr", filter_attr},
};

}  // namespace

std::span<const NamedFilter> sequence_filters() { return kSequences; }

}  // namespace hearth::jinja
