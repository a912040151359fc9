// Renders a tree: statements write, expressions give values.
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

/// Variables of a block; a macro keeps those around it alive.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<int, Value>> variables;
  const Value* find(int name) const;  // here and around
  void set(int name, Value value);
};

/// A piece of the output, and the message whose turn of a loop wrote it (-1: none).
struct Piece {
  int64_t message = -1;
  size_t begin = 0;
  size_t end = 0;
};

class Evaluator {
 public:
  /// `date`: YYYY-MM-DD, what strftime_now takes for today.
  Evaluator(const Tree& tree, const std::string& date);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  void define(std::string_view name, Value value);  // a variable of the template
  void run();                                       // once; TemplateError
  int line() const { return line_; }                // where it is, or failed

  const std::string& output() const { return root_.text; }
  const std::vector<Piece>& pieces() const { return pieces_; }
  /// Where {% generation %} blocks wrote; `generated_hidden`: one wrote into a macro or a variable,
  /// whose place in the output is not known.
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
  /// Keeps a namespace until the end, when what it holds is dropped: it may hold itself.
  void keep(std::shared_ptr<Object> object) { kept_.push_back(std::move(object)); }
  const std::string& date() const { return date_; }

 private:
  enum class Flow : uint8_t { normal, leave, next };
  struct Output {
    std::string text;
    ~Output() { release_text(static_cast<int64_t>(text.size())); }
  };
  struct Inner;  // a scope inside of the present one, while it lives

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
  std::vector<std::shared_ptr<Scope>> captured_;  // that macros keep
  std::vector<std::shared_ptr<Object>> kept_;
  std::vector<Piece> pieces_;
  std::vector<std::pair<size_t, size_t>> generated_;
  bool generated_hidden_ = false;
  int64_t message_ = -1;  // whose turn of a loop it is
  int line_ = 1;
};

}  // namespace hearth::jinja
