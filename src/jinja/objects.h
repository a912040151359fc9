// Values with behaviour of their own.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "jinja/ast.h"
#include "jinja/evaluator.h"
#include "jinja/functions.h"
#include "jinja/methods.h"

namespace hearth::jinja {

struct MethodObject final : Object {
  MethodObject(Value of, Method of_type) : self(std::move(of)), method(of_type) {
    depth = self.depth() + 1;
  }
  std::string type_name() const override { return "builtin_function_or_method"; }
  bool callable() const override { return true; }
  Value call(Evaluator& e, Arguments& arguments) override { return method(e, self, arguments); }
  Value self;
  Method method;
};

struct FunctionObject final : Object {
  explicit FunctionObject(Function of) : function(of) {}
  std::string type_name() const override { return "function"; }
  bool callable() const override { return true; }
  Value call(Evaluator& e, Arguments& arguments) override { return function(e, arguments); }
  Function function;
};

struct MacroObject final : Object {
  std::string type_name() const override { return "Macro"; }
  std::optional<Value> attribute(Evaluator& e, const std::string& name) override;
  bool callable() const override { return true; }
  Value call(Evaluator& e, Arguments& arguments) override {
    return e.call_macro(*signature, around, arguments);
  }
  std::shared_ptr<Signature> signature;
  std::shared_ptr<Scope> around;
};

struct NamespaceObject final : Object {
  std::string type_name() const override { return "Namespace"; }
  std::optional<Value> attribute(Evaluator& e, const std::string& name) override;
  std::string text() const override;
  void set(const std::string& name, Value value);
  Dict members;
};

/// `loop`: walks over the items that pass the loop's filter. Like Jinja, it looks at most one item
/// ahead, unless the template asks for the length.
struct LoopObject final : Object, std::enable_shared_from_this<LoopObject> {
  std::string type_name() const override { return "LoopContext"; }
  bool callable() const override { return true; }
  Value call(Evaluator& e, Arguments& arguments) override;
  std::optional<Value> attribute(Evaluator& e, const std::string& name) override;
  bool advance();  // to the next item; false after the last
  const Value& item() const { return current_; }
  Value cycle(const Arguments& arguments) const;
  Value changed(const Arguments& arguments);

  Values items;
  bool sized = true;                         // its length is known without walking
  std::function<bool(const Value&)> passes;  // null: all

 private:
  bool look_ahead();  // fills after_
  int64_t length();
  size_t at_ = 0;
  int64_t index0_ = -1;
  std::optional<int64_t> length_;
  std::optional<Value> after_;
  Value before_, current_;
  std::optional<Value> last_changed_;
};

}  // namespace hearth::jinja
