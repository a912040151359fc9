#include "jinja/methods.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "jinja/meter.h"
#include "jinja/operators.h"
#include "jinja/string_methods.h"

namespace hearth::jinja {
namespace {

Value dict_get(Evaluator&, const Value& self, const Arguments& arguments) {
  if (!arguments.named.empty()) fail("get takes no named arguments");
  const auto bound = bind("get", arguments, {"key", "default"}, 1);
  charge_values(self.as_dict().items.size() / 8);
  if (bound[0]->is_dict() || bound[0]->is_list(ListKind::list)) {
    fail("unhashable type: '" + bound[0]->type_name() + "'");
  }
  if (const Value* found = self.as_dict().find(*bound[0])) return *found;
  return bound[1] != nullptr ? *bound[1] : Value();
}

template <ListKind kind>
Value dict_view(Evaluator&, const Value& self, const Arguments& arguments) {
  bind("a method of dict", arguments, {});
  Values items;
  charge_values(self.as_dict().items.size());
  for (const auto& [key, value] : self.as_dict().items) {
    items.push_back(kind == ListKind::keys     ? key
                    : kind == ListKind::values ? value
                                               : Value::list({key, value}, ListKind::tuple));
  }
  return Value::list(std::move(items), kind);
}

Value dict_copy(Evaluator&, const Value& self, const Arguments& arguments) {
  bind("copy", arguments, {});
  charge_values(self.as_dict().items.size());
  auto copy = std::make_shared<Dict>(self.as_dict());
  copy->message = -1;
  return copy;
}

Value list_count(Evaluator&, const Value& self, const Arguments& arguments) {
  const auto bound = bind("count", arguments, {"value"}, 1);
  int64_t count = 0;
  for (const Value& each : self.as_list().items) count += equal(each, *bound[0]) ? 1 : 0;
  return count;
}

Value list_index(Evaluator&, const Value& self, const Arguments& arguments) {
  const auto bound = bind("index", arguments, {"value", "start", "stop"}, 1);
  const Values& items = self.as_list().items;
  const auto length = static_cast<int64_t>(items.size());
  const auto clamp = [&](const Value* given, int64_t absent) {
    if (given == nullptr) return absent;
    const int64_t at = integer_of(*given, "index");
    return std::clamp<int64_t>(at < 0 ? at + length : at, 0, length);
  };
  const int64_t stop = clamp(bound[2], length);
  for (int64_t i = clamp(bound[1], 0); i < stop; ++i) {
    if (equal(items[static_cast<size_t>(i)], *bound[0])) return i;
  }
  fail("index: the value is not in the list");
}

Value list_copy(Evaluator&, const Value& self, const Arguments& arguments) {
  bind("copy", arguments, {});
  charge_values(self.as_list().items.size());
  return Value::list(self.as_list().items);
}

Method dict_method(std::string_view name) {
  if (name == "get") return dict_get;
  if (name == "keys") return dict_view<ListKind::keys>;
  if (name == "values") return dict_view<ListKind::values>;
  if (name == "items") return dict_view<ListKind::items>;
  if (name == "copy") return dict_copy;
  if (name == "fromkeys") fail("the method fromkeys is not supported");
  return nullptr;
}

Method list_method(ListKind kind, std::string_view name) {
  if (kind > ListKind::range) return nullptr;
  if (name == "count") return list_count;
  if (name == "index") return list_index;
  return name == "copy" && kind == ListKind::list ? list_copy : nullptr;
}

}  // namespace

Method find_method(const Value& self, const std::string& name) {
  if (self.is_string()) return find_string_method(name);
  if (self.is_dict()) return dict_method(name);
  if (self.is_list()) return list_method(self.as_list().kind, name);
  return nullptr;
}

bool is_mutator(const Value& self, const std::string& name) {
  static constexpr std::array<std::string_view, 5> kOfDicts = {"clear", "pop", "popitem",
                                                               "setdefault", "update"};
  static constexpr std::array<std::string_view, 8> kOfLists = {
      "append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"};
  if (self.is_dict()) return std::find(kOfDicts.begin(), kOfDicts.end(), name) != kOfDicts.end();
  return self.is_list(ListKind::list) &&
         std::find(kOfLists.begin(), kOfLists.end(), name) != kOfLists.end();
}

}  // namespace hearth::jinja
