// Filters that compare items.
#include <algorithm>

#include "jinja/filters.h"
#include "jinja/operators.h"
#include "jinja/sequences.h"
#include "jinja/unicode.h"

namespace hearth::jinja {
namespace {

Value key_of(const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is_string()) return value;
  charge_values(value.bytes().size());
  return to_lower(value.bytes());
}

using Keyed = std::pair<Value, Value>;  // key, item

// Stable; in reverse equal items keep their order too, as in Python.
void sort_keyed(std::vector<Keyed>& items, bool reverse) {
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    return compare(reverse ? b.first : a.first, reverse ? a.first : b.first, "<") == -1;
  });
}

Value sorted_items(std::vector<Keyed> items, bool reverse) {
  sort_keyed(items, reverse);
  Values sorted;
  sorted.reserve(items.size());
  for (Keyed& each : items) sorted.push_back(std::move(each.second));
  return Value::list(std::move(sorted));
}

// The attributes "a,b.c" of an item as a list, that sorts by all of them.
Value keys_of(Evaluator& e, const Value& item, const Value* attribute, bool case_sensitive) {
  Values keys;
  if (!is_given(attribute) || !attribute->is_string()) {
    keys.push_back(key_of(attribute_path(e, item, attribute), case_sensitive));
  } else {
    std::string_view rest = attribute->bytes();
    while (true) {
      const size_t comma = rest.find(',');
      const Value path = std::string(rest.substr(0, comma));
      keys.push_back(key_of(attribute_path(e, item, &path), case_sensitive));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  return Value::list(std::move(keys));
}

Value filter_sort(Evaluator& e, const Value& input, const Arguments& arguments) {
  const auto bound = bind("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  std::vector<Keyed> items;
  for (const Value& each : iterate(input)) {
    items.emplace_back(keys_of(e, each, bound[2], truth_or(bound[1], false)), each);
  }
  return sorted_items(std::move(items), truth_or(bound[0], false));
}

Value filter_dictsort(Evaluator&, const Value& input, const Arguments& arguments) {
  const auto bound = bind("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string by = bound[1] != nullptr ? text_of(*bound[1], "dictsort") : "key";
  if (by != "key" && by != "value") fail("dictsort: expected by to be key or value");
  require_defined(input);
  if (!input.is_dict()) fail("dictsort: expected a mapping, found " + input.type_name());
  std::vector<Keyed> items;
  for (const auto& [key, value] : input.as_dict().items) {
    items.emplace_back(key_of(by == "key" ? key : value, truth_or(bound[0], false)),
                       Value::list({key, value}, ListKind::tuple));
  }
  return sorted_items(std::move(items), truth_or(bound[2], false));
}

Value filter_unique(Evaluator& e, const Value& input, const Arguments& arguments) {
  const auto bound = bind("unique", arguments, {"case_sensitive", "attribute"});
  Values kept;
  Values seen;
  for (const Value& each : iterate(input)) {
    const Value key = key_of(attribute_path(e, each, bound[1]), truth_or(bound[0], false));
    if (key.is_dict() || key.is_list(ListKind::list)) {
      fail("unhashable type: '" + key.type_name() + "'");
    }
    if (contains(Value::list(seen), key)) continue;
    seen.push_back(key);
    kept.push_back(each);
  }
  return Value::list(std::move(kept), ListKind::generator);
}

template <int wanted>  // -1: the least, 1: the most
Value filter_extreme(Evaluator& e, const Value& input, const Arguments& arguments) {
  const auto bound = bind("min and max", arguments, {"case_sensitive", "attribute"});
  const bool case_sensitive = truth_or(bound[0], false);
  const Values items = iterate(input);
  if (items.empty()) return Value::undefined("no aggregated item, the sequence was empty");
  size_t best = 0;
  Value best_key = key_of(attribute_path(e, items[0], bound[1]), case_sensitive);
  for (size_t i = 1; i < items.size(); ++i) {
    Value key = key_of(attribute_path(e, items[i], bound[1]), case_sensitive);
    if (compare(key, best_key, wanted < 0 ? "<" : ">") == wanted) {
      best = i;
      best_key = std::move(key);
    }
  }
  return items[best];
}

Value filter_groupby(Evaluator& e, const Value& input, const Arguments& arguments) {
  const auto bound = bind("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  const bool case_sensitive = truth_or(bound[2], false);
  const auto key = [&](const Value& item) {
    return key_of(attribute_path(e, item, bound[0], bound[1]), case_sensitive);
  };
  std::vector<Keyed> items;
  for (const Value& each : iterate(input)) items.emplace_back(key(each), each);
  sort_keyed(items, false);
  Values groups;
  for (size_t i = 0; i < items.size();) {
    Values members;
    const Value group_key = items[i].first;
    for (; i < items.size() && equal(items[i].first, group_key); ++i) {
      members.push_back(items[i].second);
    }
    const Value shown = attribute_path(e, members[0], bound[0], bound[1]);
    const Value group = Value::list({shown, Value::list(std::move(members))}, ListKind::tuple);
    group.as_list().grouped = true;
    groups.push_back(group);
  }
  return Value::list(std::move(groups));
}

constexpr NamedFilter kSorting[] = {
    {"sort", filter_sort},       {"dictsort", filter_dictsort}, {"unique", filter_unique},
    {"min", filter_extreme<-1>}, {"max", filter_extreme<1>},    {"groupby", filter_groupby},
};

}  // namespace

std::span<const NamedFilter> sorting_filters() { return kSorting; }

}  // namespace hearth::jinja
