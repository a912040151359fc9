#include "jinja/objects.h"

#include <algorithm>

#include "base/error.h"
#include "jinja/operators.h"
#include "jinja/write.h"

namespace hearth::jinja {
namespace {

LoopObject& loop_of(const Value& self) { return static_cast<LoopObject&>(self.as_object()); }

}  // namespace

std::optional<Value> MacroObject::attribute(Evaluator&, const std::string& name) {
  if (name == "name") return Value(signature->name);
  if (name == "catch_kwargs") return Value(signature->takes_kwargs);
  if (name == "catch_varargs") return Value(signature->takes_varargs);
  if (name == "caller") return Value(signature->takes_caller);
  if (name != "arguments") return std::nullopt;
  Values names;
  for (const std::string& each : signature->parameter_names) names.emplace_back(each);
  return Value::list(std::move(names), ListKind::tuple);
}

std::optional<Value> NamespaceObject::attribute(Evaluator&, const std::string& name) {
  const Value* found = members.find(std::string_view(name));
  return found == nullptr ? std::nullopt : std::optional<Value>(*found);
}

std::string NamespaceObject::text() const {
  const Level level;
  const Value copy = std::make_shared<Dict>(members);
  return "<Namespace " + to_repr(copy) + ">";
}

void NamespaceObject::set(const std::string& name, Value value) {
  if (name.starts_with('_')) {
    fail("an attribute of a namespace cannot begin with an underscore: " + quoted(name));
  }
  charge_values(members.items.size() / 8);
  members.set(name, std::move(value));
}

Value LoopObject::call(Evaluator&, Arguments&) { fail("recursive loops are not supported"); }

bool LoopObject::look_ahead() {
  while (!after_ && at_ < items.size()) {
    const Value& candidate = items[at_++];
    if (!passes || passes(candidate)) after_ = candidate;
  }
  return after_.has_value();
}

bool LoopObject::advance() {
  if (!look_ahead()) return false;
  ++index0_;
  before_ = std::move(current_);
  current_ = std::move(*after_);
  after_.reset();
  return true;
}

// Of a walk whose end is not known, all that is left is walked now, as Jinja does.
int64_t LoopObject::length() {
  if (length_) return *length_;
  if (sized) return *(length_ = static_cast<int64_t>(items.size()));
  Values left;
  for (; at_ < items.size(); ++at_) {
    if (!passes || passes(items[at_])) left.push_back(items[at_]);
  }
  length_ = index0_ + 1 + static_cast<int64_t>(left.size()) + (after_ ? 1 : 0);
  items = std::move(left);
  at_ = 0;
  passes = nullptr;
  return *length_;
}

std::optional<Value> LoopObject::attribute(Evaluator&, const std::string& name) {
  if (name == "index0") return Value(index0_);
  if (name == "index") return Value(index0_ + 1);
  if (name == "first") return Value(index0_ == 0);
  if (name == "last") return Value(!look_ahead());
  if (name == "length") return Value(length());
  if (name == "revindex0") return Value(length() - index0_ - 1);
  if (name == "revindex") return Value(length() - index0_);
  if (name == "depth0") return Value(0);
  if (name == "depth") return Value(1);
  if (name == "previtem") {
    return index0_ == 0 ? Value::undefined("there is no previous item") : before_;
  }
  if (name == "nextitem") {
    return look_ahead() ? *after_ : Value::undefined("there is no next item");
  }
  const bool cycles = name == "cycle";
  if (!cycles && name != "changed") return std::nullopt;
  const Method method = cycles
                            ? Method([](Evaluator&, const Value& self, const Arguments& arguments) {
                                return loop_of(self).cycle(arguments);
                              })
                            : Method([](Evaluator&, const Value& self, const Arguments& arguments) {
                                return loop_of(self).changed(arguments);
                              });
  const Value self = std::static_pointer_cast<Object>(shared_from_this());
  std::shared_ptr<Object> object = std::make_shared<MethodObject>(self, method);
  return Value(std::move(object));
}

Value LoopObject::cycle(const Arguments& arguments) const {
  if (arguments.positional.empty() || !arguments.named.empty()) fail("no items to cycle through");
  return arguments.positional[static_cast<size_t>(index0_) % arguments.positional.size()];
}

Value LoopObject::changed(const Arguments& arguments) {
  Value now = Value::list(arguments.positional, ListKind::tuple);
  if (last_changed_ && equal(*last_changed_, now)) return false;
  depth = std::max(depth, now.depth() + 1);
  last_changed_ = std::move(now);
  return true;
}

}  // namespace hearth::jinja
