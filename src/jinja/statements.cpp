#include <algorithm>

#include "jinja/evaluator.h"
#include "jinja/objects.h"
#include "jinja/operators.h"
#include "jinja/sequences.h"
#include "jinja/write.h"

namespace hearth::jinja {

struct Evaluator::Inner {
  explicit Inner(Evaluator& e) : Inner(e, e.scope_) {}
  Inner(Evaluator& e, std::shared_ptr<Scope> around) : e_(e), outer_(std::move(e.scope_)) {
    e_.scope_ = std::make_shared<Scope>();
    e_.scope_->parent = std::move(around);
  }
  ~Inner() { e_.scope_ = std::move(outer_); }
  Inner(const Inner&) = delete;
  Inner& operator=(const Inner&) = delete;

 private:
  Evaluator& e_;
  std::shared_ptr<Scope> outer_;
};

void Evaluator::run() {
  if (execute(tree_.body) != Flow::normal) fail("break or continue outside of a loop");
}

void Evaluator::write(std::string_view text) {
  if (text.empty()) return;
  charge_bytes(text.size());
  hold_text(static_cast<int64_t>(text.size()));
  const size_t begin = out_->text.size();
  out_->text += text;
  if (out_ != &root_) return;
  if (pieces_.empty() || pieces_.back().message != message_) {
    pieces_.push_back({message_, begin, begin});
  }
  pieces_.back().end = root_.text.size();
}

Value Evaluator::capture(const Body& body) {
  Output captured;
  Output* outer = std::exchange(out_, &captured);
  Flow flow = Flow::normal;
  try {
    flow = execute(body);
  } catch (...) {
    out_ = outer;
    throw;
  }
  out_ = outer;
  if (flow != Flow::normal) fail("break or continue outside of a loop");
  return captured.text;
}

Evaluator::Flow Evaluator::execute(const Body& body) {
  const Level level;
  for (const StatementPtr& statement : body) {
    const Flow flow = execute(*statement);
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Evaluator::Flow Evaluator::execute(const Statement& s) {
  using Kind = Statement::Kind;
  charge(1);
  line_ = s.line;
  switch (s.kind) {
    case Kind::text: write(s.text.bytes()); break;
    case Kind::output: write(to_text(evaluate(*s.value))); break;
    case Kind::condition: return execute(evaluate(*s.value).truth() ? s.body : s.otherwise);
    case Kind::loop: return execute_loop(s);
    case Kind::set: assign(*s.target, evaluate(*s.value)); break;
    case Kind::set_block: {
      Value content;
      {
        const Inner inner(*this);
        content = capture(s.body);
        if (s.filter) content = apply_filter(*s.filter, &content);
      }
      assign(*s.target, std::move(content));
      break;
    }
    case Kind::macro: scope_->set(s.name, make_macro(s.signature)); break;
    case Kind::call_block: execute_call_block(s); break;
    case Kind::filter_block: {
      const Inner inner(*this);
      const Value content = capture(s.body);
      write(to_text(apply_filter(*s.filter, &content)));
      break;
    }
    case Kind::with: return execute_with(s);
    case Kind::generation: execute_generation(s); break;
    case Kind::leave: return Flow::leave;
    case Kind::next: return Flow::next;
    case Kind::scope: {
      const Inner inner(*this);
      return execute(s.body);
    }
  }
  return Flow::normal;
}

Evaluator::Flow Evaluator::execute_loop(const Statement& s) {
  const auto loop = std::make_shared<LoopObject>();
  const Value over = evaluate(*s.value);
  loop->sized = (!over.is_list() || over.as_list().has_length()) && !s.filter;
  loop->items = iterate(over);
  for (const Value& each : loop->items) loop->depth = std::max(loop->depth, each.depth() + 1);
  if (loop->depth > kMaxDepth) fail("values nested too deep");
  if (s.filter) {
    loop->passes = [&](const Value& each) {
      const Inner inner(*this);
      assign(*s.target, each);
      return evaluate(*s.filter).truth();
    };
  }
  bool any = false;
  const int64_t outer_message = message_;
  const Value loop_value = std::static_pointer_cast<Object>(loop);
  Flow flow = Flow::normal;
  while (flow != Flow::leave && loop->advance()) {
    any = true;
    charge(1);
    const Inner inner(*this);
    const Value& each = loop->item();
    if (each.is_dict() && each.as_dict().message >= 0) message_ = each.as_dict().message;
    scope_->set(s.name, loop_value);
    assign(*s.target, each);
    flow = execute(s.body);
    message_ = outer_message;
  }
  loop->passes = nullptr;
  if (any) return Flow::normal;
  const Inner inner(*this);
  return execute(s.otherwise);
}

Evaluator::Flow Evaluator::execute_with(const Statement& s) {
  Values values;  // of the scope around
  for (const ExpressionPtr& value : s.values) values.push_back(evaluate(*value));
  const Inner inner(*this);
  for (size_t i = 0; i < values.size(); ++i) assign(*s.targets[i], std::move(values[i]));
  return execute(s.body);
}

void Evaluator::execute_generation(const Statement& s) {
  const Inner inner(*this);
  const size_t begin = root_.text.size();
  if (execute(s.body) != Flow::normal) fail("break or continue out of a generation block");
  if (out_ != &root_) {
    generated_hidden_ = true;
  } else if (root_.text.size() > begin) {
    generated_.emplace_back(begin, root_.text.size());
  }
}

void Evaluator::execute_call_block(const Statement& s) {
  const Value caller = make_macro(s.signature);
  const Expression& call_node = *s.value;
  const Value callee = evaluate(*call_node.parts[0]);
  Arguments arguments = evaluate_arguments(call_node.call);
  arguments.named.emplace_back("caller", caller);
  line_ = s.line;
  write(to_text(call(callee, arguments)));
}

void Evaluator::assign(const Expression& target, Value value) {
  if (target.kind == Expression::Kind::name) return scope_->set(target.name, std::move(value));
  if (target.kind == Expression::Kind::namespace_attribute) {
    const Value* found = scope_->find(target.name);
    auto* object = found != nullptr && found->is_object()
                       ? dynamic_cast<NamespaceObject*>(&found->as_object())
                       : nullptr;
    if (object == nullptr) fail("only attributes of a namespace can be assigned");
    return object->set(target.text, std::move(value));
  }
  require_defined(value);
  Values values = iterate(value);
  if (values.size() != target.parts.size()) {
    fail("cannot unpack " + std::to_string(values.size()) + " values into " +
         std::to_string(target.parts.size()) + " names");
  }
  for (size_t i = 0; i < values.size(); ++i) assign(*target.parts[i], std::move(values[i]));
}

Value Evaluator::make_macro(const std::shared_ptr<Signature>& signature) {
  auto macro = std::make_shared<MacroObject>();
  macro->signature = signature;
  macro->around = scope_;
  if (captured_.back() != scope_) captured_.push_back(scope_);
  return std::static_pointer_cast<Object>(macro);
}

Value Evaluator::call_macro(const Signature& signature, const std::shared_ptr<Scope>& around,
                            Arguments& arguments) {
  const size_t count = signature.parameters.size();
  const std::string name = signature.name.empty() ? "caller" : signature.name;
  std::vector<std::optional<Value>> given(count);
  Values rest;
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    if (i < count) {
      given[i] = arguments.positional[i];
    } else {
      rest.push_back(arguments.positional[i]);
    }
  }
  auto keywords = std::make_shared<Dict>();
  Value caller = Value::undefined("no caller defined");
  for (auto& [key, value] : arguments.named) {
    const auto& names = signature.parameter_names;
    const auto at = static_cast<size_t>(std::find(names.begin(), names.end(), key) - names.begin());
    if (at < count && !given[at]) {
      given[at] = std::move(value);
    } else if (key == "caller" && signature.takes_caller) {
      caller = std::move(value);
    } else if (signature.takes_kwargs) {
      keywords->set(key, std::move(value));
    } else {
      fail("macro " + name + " takes no argument named " + key);
    }
  }
  if (!rest.empty() && !signature.takes_varargs) {
    fail("macro " + name + " takes at most " + std::to_string(count) + " arguments");
  }
  const int call_line = line_;
  const Inner inner(*this, around);
  // The numbers of these names are those of the template's table, if its text has them.
  if (signature.takes_caller) define("caller", std::move(caller));
  if (signature.takes_kwargs) define("kwargs", std::move(keywords));
  if (signature.takes_varargs) define("varargs", Value::list(std::move(rest), ListKind::tuple));
  const size_t first_default = count - signature.defaults.size();
  for (size_t i = 0; i < count; ++i) {
    Value value =
        given[i] ? std::move(*given[i])
        : i >= first_default
            ? evaluate(*signature.defaults[i - first_default])
            : Value::undefined("parameter '" + signature.parameter_names[i] + "' was not provided");
    scope_->set(signature.parameters[i], std::move(value));
  }
  Value result = capture(signature.body);
  line_ = call_line;
  return result;
}

}  // namespace hearth::jinja
