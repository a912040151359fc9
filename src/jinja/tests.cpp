#include "jinja/tests.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "jinja/evaluator.h"
#include "jinja/filters.h"
#include "jinja/operators.h"
#include "jinja/unicode.h"
#include "jinja/write.h"

namespace hearth::jinja {
namespace {

const Value& operand(const Arguments& arguments) {
  return *bind("the test", arguments, {"other"}, 1)[0];
}

int64_t remainder_of(const Value& value, int64_t by) {
  if (value.is_float()) {  // 3.0 is odd
    const double rest = arithmetic("%", value, Value(by)).as_double();
    return rest == 0 ? 0 : rest == 1 ? 1 : -1;
  }
  if (value.is_big()) return arithmetic("%", value, Value(by)).as_int();
  return arithmetic("%", Value(integer_of(value, "the test")), Value(by)).as_int();
}

template <char Op>
bool test_order(Evaluator&, const Value& value, const Arguments& arguments) {
  static constexpr std::string_view kOp = Op == '<'   ? "<"
                                          : Op == '>' ? ">"
                                          : Op == 'l' ? "<="
                                          : Op == 'g' ? ">="
                                          : Op == '=' ? "=="
                                                      : "!=";
  return compares(value, kOp, operand(arguments));
}

template <bool (*is)(const Value&)>
bool test_type(Evaluator&, const Value& value, const Arguments& arguments) {
  bind("the test", arguments, {});
  return is(value);
}

bool is_iterable(const Value& v) {
  return v.is_undefined() || v.is_string() || v.is_list() || v.is_dict() ||
         (v.is_object() && v.type_name() == "LoopContext");
}
bool is_test_sequence(const Value& v) {
  return v.is_undefined() || v.is_string() || v.is_dict() ||
         (v.is_list() && v.as_list().has_index());
}
bool is_callable(const Value& v) {
  return v.is_undefined() || (v.is_object() && v.as_object().callable());
}

using NamedTest = std::pair<std::string_view, Test>;

constexpr NamedTest kTests[] = {
    {"defined", test_type<[](const Value& v) { return !v.is_undefined(); }>},
    {"undefined", test_type<[](const Value& v) { return v.is_undefined(); }>},
    {"none", test_type<[](const Value& v) { return v.is_none(); }>},
    {"boolean", test_type<[](const Value& v) { return v.is_bool(); }>},
    {"true", test_type<[](const Value& v) { return v.is_bool() && v.as_bool(); }>},
    {"false", test_type<[](const Value& v) { return v.is_bool() && !v.as_bool(); }>},
    {"integer", test_type<[](const Value& v) { return v.is_int() || v.is_big(); }>},
    {"float", test_type<[](const Value& v) { return v.is_float(); }>},
    {"number", test_type<[](const Value& v) { return v.is_number(); }>},
    {"string", test_type<[](const Value& v) { return v.is_string(); }>},
    {"mapping", test_type<[](const Value& v) { return v.is_dict(); }>},
    {"iterable", test_type<is_iterable>},
    {"sequence", test_type<is_test_sequence>},
    {"callable", test_type<is_callable>},
    {"escaped", test_type<[](const Value& v) { return v.is_string() && v.as_string().safe; }>},
    {"lower", test_type<[](const Value& v) { return has_property(to_text(v), "islower"); }>},
    {"upper", test_type<[](const Value& v) { return has_property(to_text(v), "isupper"); }>},
    {"odd", test_type<[](const Value& v) { return remainder_of(v, 2) == 1; }>},
    {"even", test_type<[](const Value& v) { return remainder_of(v, 2) == 0; }>},
    {"divisibleby",
     [](Evaluator&, const Value& v, const Arguments& arguments) {
       const auto bound = bind("divisibleby", arguments, {"num"}, 1);
       return equal(arithmetic("%", v, *bound[0]), Value(0));
     }},
    {"filter", [](Evaluator&, const Value& v,
                  const Arguments&) { return v.is_string() && find_filter(v.bytes()) != nullptr; }},
    {"test", [](Evaluator&, const Value& v,
                const Arguments&) { return v.is_string() && find_test(v.bytes()) != nullptr; }},
    {"in",
     [](Evaluator&, const Value& v, const Arguments& arguments) {
       return contains(*bind("in", arguments, {"seq"}, 1)[0], v);
     }},
    {"sameas", [](Evaluator&, const Value& v,
                  const Arguments& arguments) { return v.same_as(operand(arguments)); }},
    {"==", test_order<'='>},
    {"eq", test_order<'='>},
    {"equalto", test_order<'='>},
    {"!=", test_order<'!'>},
    {"ne", test_order<'!'>},
    {"<", test_order<'<'>},
    {"lt", test_order<'<'>},
    {"lessthan", test_order<'<'>},
    {">", test_order<'>'>},
    {"gt", test_order<'>'>},
    {"greaterthan", test_order<'>'>},
    {"<=", test_order<'l'>},
    {"le", test_order<'l'>},
    {">=", test_order<'g'>},
    {"ge", test_order<'g'>},
};

}  // namespace

Test find_test(std::string_view name) {
  for (const NamedTest& each : kTests) {
    if (each.first == name) return each.second;
  }
  return nullptr;
}

}  // namespace hearth::jinja
