#include "jinja/evaluator.h"

#include <algorithm>

#include "base/error.h"
#include "jinja/filters.h"
#include "jinja/functions.h"
#include "jinja/methods.h"
#include "jinja/objects.h"
#include "jinja/operators.h"
#include "jinja/sequences.h"
#include "jinja/tests.h"
#include "jinja/write.h"

namespace hearth::jinja {
namespace {

Value no_attribute(const Value& value, const std::string& name) {
  return Value::undefined("'" + value.type_name() + "' object has no attribute " + quoted(name));
}

}  // namespace

const Value* Scope::find(int name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent.get()) {
    for (const auto& variable : scope->variables) {
      if (variable.first == name) return &variable.second;
    }
  }
  return nullptr;
}

void Scope::set(int name, Value value) {
  for (auto& variable : variables) {
    if (variable.first == name) {
      variable.second = std::move(value);
      return;
    }
  }
  variables.emplace_back(name, std::move(value));
}

Evaluator::Evaluator(const Tree& tree, const std::string& date)
    : tree_(tree), date_(date), scope_(std::make_shared<Scope>()) {
  captured_.push_back(scope_);
  for (size_t i = 0; i < tree.names.size(); ++i) {
    if (const Function function = find_function(tree.names[i])) {
      std::shared_ptr<Object> object = std::make_shared<FunctionObject>(function);
      scope_->set(static_cast<int>(i), std::move(object));
    }
  }
  scope_ = std::make_shared<Scope>();
  scope_->parent = captured_.back();
  captured_.push_back(scope_);
}

// Macros and the scopes around them hold one another, namespaces perhaps themselves.
Evaluator::~Evaluator() {
  for (const auto& object : kept_) static_cast<NamespaceObject&>(*object).members.items.clear();
  for (const auto& scope : captured_) scope->variables.clear();
}

void Evaluator::define(std::string_view name, Value value) {
  const auto found = std::find(tree_.names.begin(), tree_.names.end(), name);
  if (found == tree_.names.end()) return;
  scope_->set(static_cast<int>(found - tree_.names.begin()), std::move(value));
}

Value Evaluator::evaluate(const Expression& e) {
  using Kind = Expression::Kind;
  const Level level;
  charge(1);
  line_ = e.line;
  switch (e.kind) {
    case Kind::constant: return e.value;
    case Kind::name: return evaluate_name(e);
    case Kind::list: return Value::list(evaluate_all(e.parts));
    case Kind::tuple: return Value::list(evaluate_all(e.parts), ListKind::tuple);
    case Kind::dict: return evaluate_dict(e);
    case Kind::attribute: return attribute(evaluate(*e.parts[0]), e.text);
    case Kind::item: {
      const Value of = evaluate(*e.parts[0]);
      return item(of, evaluate(*e.parts[1]));
    }
    case Kind::slice: return evaluate_slice(e);
    case Kind::call: return evaluate_call(e);
    case Kind::filter: return apply_filter(e, nullptr);
    case Kind::test: {
      const Value input = evaluate(*e.parts[0]);
      return test(e.text, input, evaluate_arguments(e.call));
    }
    case Kind::negate: return negated(evaluate(*e.parts[0]));
    case Kind::plus: {
      const Value value = evaluate(*e.parts[0]);
      require_defined(value);
      if (!value.is_number()) fail("bad type for unary +: " + value.type_name());
      return value.is_bool() ? Value(value.as_int()) : value;
    }
    case Kind::logical_not: return !evaluate(*e.parts[0]).truth();
    case Kind::logical_and: {
      Value left = evaluate(*e.parts[0]);
      return left.truth() ? evaluate(*e.parts[1]) : left;
    }
    case Kind::logical_or: {
      Value left = evaluate(*e.parts[0]);
      return left.truth() ? left : evaluate(*e.parts[1]);
    }
    case Kind::binary: {
      const Value left = evaluate(*e.parts[0]);
      const Value right = evaluate(*e.parts[1]);
      line_ = e.line;
      return arithmetic(e.text, left, right);
    }
    case Kind::concat: {
      std::string text;
      for (const ExpressionPtr& part : e.parts) text += to_text(evaluate(*part));
      charge_bytes(text.size());
      return text;
    }
    case Kind::comparison: return evaluate_comparison(e);
    case Kind::condition: return evaluate_condition(e);
    case Kind::namespace_attribute: break;  // a target only
  }
  fail("an expression that cannot be evaluated");
}

Value Evaluator::evaluate_name(const Expression& e) {
  if (const Value* found = scope_->find(e.name)) return *found;
  return Value::undefined(quoted(e.text) + " is undefined");
}

Values Evaluator::evaluate_all(const std::vector<ExpressionPtr>& parts) {
  Values values;
  values.reserve(parts.size());
  for (const ExpressionPtr& part : parts) values.push_back(evaluate(*part));
  return values;
}

Value Evaluator::evaluate_dict(const Expression& e) {
  auto dict = std::make_shared<Dict>();
  for (size_t i = 0; i < e.parts.size(); i += 2) {
    const Value key = evaluate(*e.parts[i]);
    if (key.is_dict() || (key.is_list() && !key.is_list(ListKind::tuple))) {
      fail("unhashable type: '" + key.type_name() + "'");
    }
    dict->set(key, evaluate(*e.parts[i + 1]));
  }
  return dict;
}

Value Evaluator::evaluate_slice(const Expression& e) {
  const Value of = evaluate(*e.parts[0]);
  Value bounds[3];
  for (size_t i = 0; i < 3; ++i) {
    if (e.parts[i + 1]) bounds[i] = evaluate(*e.parts[i + 1]);
  }
  return slice(of, &bounds[0], &bounds[1], &bounds[2]);
}

Value Evaluator::evaluate_condition(const Expression& e) {
  if (evaluate(*e.parts[1]).truth()) return evaluate(*e.parts[0]);
  if (e.parts[2]) return evaluate(*e.parts[2]);
  return Value::undefined("the inline if on line " + std::to_string(e.line) +
                          " was false and has no else");
}

bool Evaluator::evaluate_comparison(const Expression& e) {
  Value left = evaluate(*e.parts[0]);
  for (size_t i = 0; i < e.operators.size(); ++i) {
    Value right = evaluate(*e.parts[i + 1]);
    if (!compares(left, e.operators[i], right)) return false;
    left = std::move(right);
  }
  return true;
}

Arguments Evaluator::evaluate_arguments(const CallNode& call) {
  Arguments arguments;
  arguments.positional = evaluate_all(call.positional);
  for (const auto& [name, value] : call.named) arguments.named.emplace_back(name, evaluate(*value));
  if (call.list) {
    for (Value& value : iterate(evaluate(*call.list))) {
      arguments.positional.push_back(std::move(value));
    }
  }
  if (call.dict) {
    const Value more = evaluate(*call.dict);
    if (!more.is_dict()) fail("** needs a mapping, not " + more.type_name());
    for (const auto& [key, value] : more.as_dict().items) {
      arguments.named.emplace_back(text_of(key, "name of an argument"), value);
    }
  }
  for (size_t i = 1; i < arguments.named.size(); ++i) {
    charge_values(i / 8);
    for (size_t j = 0; j < i; ++j) {
      if (arguments.named[i].first == arguments.named[j].first) {
        fail("two values for the argument " + quoted(arguments.named[i].first));
      }
    }
  }
  return arguments;
}

Value Evaluator::evaluate_call(const Expression& e) {
  const Expression& callee = *e.parts[0];
  if (callee.kind == Expression::Kind::attribute) {  // without an object for the method
    const Value self = evaluate(*callee.parts[0]);
    if (const Method method = find_method(self, callee.text)) {
      const Arguments arguments = evaluate_arguments(e.call);
      line_ = e.line;
      return method(*this, self, arguments);
    }
    const Value function = attribute(self, callee.text);
    Arguments arguments = evaluate_arguments(e.call);
    line_ = e.line;
    return call(function, arguments);
  }
  const Value function = evaluate(callee);
  Arguments arguments = evaluate_arguments(e.call);
  line_ = e.line;
  return call(function, arguments);
}

Value Evaluator::apply_filter(const Expression& e, const Value* content) {
  const bool of_block = !e.parts[0];
  Value input;
  if (of_block) {
    input = *content;
  } else if (content != nullptr) {  // only filters stand before one of a block
    input = apply_filter(*e.parts[0], content);
  } else {
    input = evaluate(*e.parts[0]);
  }
  const Arguments arguments = evaluate_arguments(e.call);
  line_ = e.line;
  return find_filter(e.text)(*this, input, arguments);
}

Value Evaluator::call(const Value& callee, Arguments& arguments) {
  const Level level;
  require_defined(callee);
  if (!callee.is_object()) fail("'" + callee.type_name() + "' object is not callable");
  return callee.as_object().call(*this, arguments);
}

Value Evaluator::attribute(const Value& value, const std::string& name) {
  require_defined(value);
  if (name.starts_with("__")) return no_attribute(value, name);
  if (const Method method = find_method(value, name)) {
    std::shared_ptr<Object> object = std::make_shared<MethodObject>(value, method);
    return object;
  }
  if (is_mutator(value, name)) {
    return Value::undefined("access to attribute " + quoted(name) + " of '" + value.type_name() +
                            "' object is unsafe");
  }
  if (value.is_dict()) {
    charge_values(value.as_dict().items.size() / 8);
    if (const Value* found = value.as_dict().find(std::string_view(name))) return *found;
  }
  if (value.is_list() && value.as_list().grouped) {
    if (name == "grouper") return value.as_list().items[0];
    if (name == "list") return value.as_list().items[1];
  }
  if (value.is_object()) {
    if (auto found = value.as_object().attribute(*this, name)) return std::move(*found);
  }
  return no_attribute(value, name);
}

Value Evaluator::item(const Value& value, const Value& key) {
  require_defined(value);
  const bool indexed = value.is_string() || (value.is_list() && value.as_list().has_index());
  if (indexed && key.is_integral()) {
    if (auto found = item_at(value, key.as_int())) return std::move(*found);
  }
  if (value.is_dict()) {
    charge_values(value.as_dict().items.size() / 8);
    if (const Value* found = value.as_dict().find(key)) return *found;
  }
  if (key.is_string()) return attribute(value, key.bytes());
  return Value::undefined("'" + value.type_name() + "' object has no element " + to_repr(key));
}

Value Evaluator::filter(const std::string& name, const Value& input, const Arguments& arguments) {
  const Filter found = find_filter(name);
  if (found == nullptr) fail("unknown filter " + quoted(name));
  return found(*this, input, arguments);
}

bool Evaluator::test(const std::string& name, const Value& input, const Arguments& arguments) {
  const Test found = find_test(name);
  if (found == nullptr) fail("unknown test " + quoted(name));
  return found(*this, input, arguments);
}

}  // namespace hearth::jinja
