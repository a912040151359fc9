// Renders a tree: statements write text, expressions return values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/ast.h"
#include "jinja/meter.h"

namespace hearth::jinja {

/// The variables of a block. A macro keeps the scopes around it alive.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<int, Value>> variables;
  const Value* find(int name) const;  // searches this scope, then its parents
  void set(int name, Value value);
};

/// Bytes [begin, end) of the output, and the message whose loop iteration wrote them (-1: none).
struct Piece {
  int64_t message = -1;
  size_t begin = 0;
  size_t end = 0;
};

class Evaluator {
 public:
  /// `date`: YYYY-MM-DD, today's date for strftime_now.
  Evaluator(const Tree& tree, const std::string& date);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  void define(std::string_view name, Value value);  // sets a variable of the template
  void run();                                       // call once; throws TemplateError
  int line() const { return line_; }                // the line that runs, or that failed

  const std::string& output() const { return root_.text; }
  const std::vector<Piece>& pieces() const { return pieces_; }
  /// Byte ranges that {% generation %} blocks wrote. `generated_hidden`: a block wrote into a macro
  /// or a variable, so its place in the output is unknown.
  const std::vector<std::pair<size_t, size_t>>& generated() const { return generated_; }
  bool generated_hidden() const { return generated_hidden_; }

  // For filters, tests, methods and functions.
  Value call(const Value& callee, Arguments& arguments);
  Value attribute(const Value& value, const std::string& name);  // value.name
  Value item(const Value& value, const Value& key);              // value[key]
  Value filter(const std::string& name, const Value& input, const Arguments& arguments);
  bool test(const std::string& name, const Value& input, const Arguments& arguments);
  Value call_macro(const Signature& signature, const std::shared_ptr<Scope>& around,
                   Arguments& arguments);
  /// Keeps a namespace alive until the end, and clears it then: a namespace may contain itself.
  void keep(std::shared_ptr<Object> object) { kept_.push_back(std::move(object)); }
  const std::string& date() const { return date_; }

 private:
  enum class Flow : uint8_t { normal, leave, next };
  struct Output {
    std::string text;
    ~Output() { release_text(static_cast<int64_t>(text.size())); }
  };
  struct Inner;  // RAII: a scope inside the current scope

  // statements.cpp
  Flow execute(const Body& body);
  Flow execute(const Statement& statement);
  Flow execute_loop(const Statement& statement);
  Flow execute_with(const Statement& statement);
  void execute_generation(const Statement& statement);
  void execute_call_block(const Statement& statement);
  void assign(const Expression& target, Value value);
  Value capture(const Body& body);
  void write(std::string_view text);
  Value make_macro(const std::shared_ptr<Signature>& signature);

  // evaluator.cpp
  Value evaluate(const Expression& expression);
  Value evaluate_name(const Expression& expression);
  Value evaluate_call(const Expression& expression);
  Value evaluate_dict(const Expression& expression);
  Value evaluate_slice(const Expression& expression);
  Value evaluate_condition(const Expression& expression);
  bool evaluate_comparison(const Expression& expression);
  Value apply_filter(const Expression& expression, const Value* content);
  Values evaluate_all(const std::vector<ExpressionPtr>& parts);
  Arguments evaluate_arguments(const CallNode& call);

  const Tree& tree_;
  std::string date_;
  Output root_;
  Output* out_ = &root_;
  std::shared_ptr<Scope> scope_;
  std::vector<std::shared_ptr<Scope>> captured_;  // scopes that macros keep alive
  std::vector<std::shared_ptr<Object>> kept_;
  std::vector<Piece> pieces_;
  std::vector<std::pair<size_t, size_t>> generated_;
  bool generated_hidden_ = false;
  int64_t message_ = -1;  // the message of the current loop iteration
  int line_ = 1;
};

}  // namespace hearth::jinja
