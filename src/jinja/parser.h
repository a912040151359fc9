// From tokens to a tree, by the grammar of jinja2/parser.py.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/ast.h"
#include "jinja/lexer.h"

namespace hearth::jinja {

/// Limits on the nesting of brackets and blocks, and on the depth of expressions. A chain of
/// operators or filters is as deep as it is long.
inline constexpr int kMaxNesting = 120;
inline constexpr int kMaxExpressionDepth = 400;

/// Parses a template. TemplateSyntaxError if it is not Jinja, or if it uses include, import, from or
/// extends (there are no files), or a recursive loop.
Tree parse(std::string_view source, std::string name);

class Parser {
 public:
  Parser(std::string_view source, Tree& tree);
  void run();

 private:
  using Kind = Expression::Kind;

  // parser.cpp: statements.
  Body parse_body(const std::vector<std::string_view>& ends);
  StatementPtr parse_statement();
  StatementPtr parse_if();
  StatementPtr parse_for();
  StatementPtr parse_set();
  StatementPtr parse_macro();
  StatementPtr parse_call_block();
  StatementPtr parse_filter_block();
  StatementPtr parse_with();
  StatementPtr parse_print();
  StatementPtr parse_scope(const std::string& tag);
  void parse_signature(Signature& signature);
  Body parse_block_of(const std::vector<std::string_view>& ends);

  // expressions.cpp
  ExpressionPtr parse_target(bool with_namespace);
  ExpressionPtr parse_target_part(bool with_namespace);
  ExpressionPtr parse_tuple(bool with_condition, bool in_brackets = false,
                            std::string_view end = {});
  ExpressionPtr parse_expression(bool with_condition = true);
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_comparison();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concat();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary(bool with_filter = true);
  ExpressionPtr parse_primary();
  ExpressionPtr parse_strings();
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  ExpressionPtr parse_postfix(ExpressionPtr of);
  ExpressionPtr parse_filters(ExpressionPtr of);
  ExpressionPtr parse_filter(ExpressionPtr of);
  ExpressionPtr parse_test(ExpressionPtr of);
  ExpressionPtr parse_subscript(ExpressionPtr of);
  ExpressionPtr parse_call(ExpressionPtr of);
  CallNode parse_arguments();
  void parse_argument(CallNode& call);

  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  bool is_op(std::string_view op) const;
  bool is_name(std::string_view name) const;
  bool take_op(std::string_view op);
  bool take_name(std::string_view name);
  void expect_op(std::string_view op);
  void expect(Token::Kind kind, const char* what);
  std::string expect_name();
  bool at_tuple_end(std::string_view end) const;
  [[noreturn]] void fail(const std::string& message) const;
  std::string shown() const;  // the current token, for messages
  ExpressionPtr make(Kind kind, int line) const;
  ExpressionPtr done(ExpressionPtr expression) const;  // sets its depth; checks the limit
  ExpressionPtr make_binary(Kind kind, std::string op, ExpressionPtr left, ExpressionPtr right);
  StatementPtr make_statement(Statement::Kind kind) const;
  int name_number(const std::string& name);
  ExpressionPtr make_name(const std::string& name, int line);

  struct Nested;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
  int nodes_ = 0;
  Tree& tree_;
  std::map<std::string, int, std::less<>> numbers_;
  std::vector<Signature*> macros_;  // that enclose the current token, innermost last
};

}  // namespace hearth::jinja
