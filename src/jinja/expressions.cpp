// Expressions, from the loosest binding to the tightest.
#include <algorithm>

#include "base/error.h"
#include "jinja/nested.h"
#include "jinja/parser.h"

namespace hearth::jinja {

ExpressionPtr Parser::make(Kind kind, int line) const {
  auto expression = std::make_unique<Expression>();
  expression->kind = kind;
  expression->line = line;
  return expression;
}

ExpressionPtr Parser::done(ExpressionPtr expression) const {
  int depth = 0;
  const auto see = [&](const ExpressionPtr& part) {
    if (part) depth = std::max(depth, part->depth);
  };
  for (const ExpressionPtr& part : expression->parts) see(part);
  for (const ExpressionPtr& part : expression->call.positional) see(part);
  for (const auto& [name, part] : expression->call.named) see(part);
  see(expression->call.list);
  see(expression->call.dict);
  expression->depth = depth + 1;
  if (depth >= kMaxExpressionDepth) {
    fail("an expression of more than " + std::to_string(kMaxExpressionDepth) + " parts in a chain");
  }
  return expression;
}

ExpressionPtr Parser::make_binary(Kind kind, std::string op, ExpressionPtr left,
                                  ExpressionPtr right) {
  auto expression = make(kind, left->line);
  expression->text = std::move(op);
  expression->parts.push_back(std::move(left));
  expression->parts.push_back(std::move(right));
  return done(std::move(expression));
}

ExpressionPtr Parser::make_name(const std::string& name, int line) {
  auto expression = make(Kind::name, line);
  expression->text = name;
  expression->name = name_number(name);
  tree_.asks_date |= name == "strftime_now";
  for (Signature* macro : macros_) {
    macro->takes_caller |= name == "caller";
    macro->takes_varargs |= name == "varargs";
    macro->takes_kwargs |= name == "kwargs";
  }
  return expression;
}

// Names and tuples of them, and with `with_namespace` attributes of namespaces.
ExpressionPtr Parser::parse_target(bool with_namespace) {
  const int line = now().line;
  ExpressionPtr first = parse_target_part(with_namespace);
  if (!is_op(",")) return first;
  auto tuple = make(Kind::tuple, line);
  tuple->parts.push_back(std::move(first));
  while (take_op(",")) {
    if (is_op(")")) break;
    tuple->parts.push_back(parse_target_part(with_namespace));
  }
  return done(std::move(tuple));
}

ExpressionPtr Parser::parse_target_part(bool with_namespace) {
  const Nested nested(*this);
  const int line = now().line;
  if (take_op("(")) {
    ExpressionPtr inside = parse_target(with_namespace);
    expect_op(")");
    return inside;
  }
  const std::string name = expect_name();
  for (const char* constant : {"true", "false", "True", "False", "none", "None"}) {
    if (name == constant) fail("cannot assign to " + name);
  }
  auto target = make_name(name, line);
  if (with_namespace && take_op(".")) {
    target->kind = Kind::namespace_attribute;
    target->text = expect_name();
  }
  return target;
}

bool Parser::at_tuple_end(std::string_view end) const {
  return now().kind == Token::Kind::output_end || now().kind == Token::Kind::statement_end ||
         is_op(")") || (!end.empty() && is_name(end));
}

ExpressionPtr Parser::parse_tuple(bool with_condition, bool in_brackets, std::string_view end) {
  const int line = now().line;
  std::vector<ExpressionPtr> parts;
  bool is_tuple = false;
  while (!at_tuple_end(end)) {
    parts.push_back(parse_expression(with_condition));
    if (!take_op(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !parts.empty()) return std::move(parts[0]);
  if (!is_tuple && !in_brackets) fail("expected an expression, found " + shown());
  auto tuple = make(Kind::tuple, line);
  tuple->parts = std::move(parts);
  return done(std::move(tuple));
}

ExpressionPtr Parser::parse_expression(bool with_condition) {
  const Nested nested(*this);
  ExpressionPtr left = parse_or();
  while (with_condition && take_name("if")) {
    auto condition = make(Kind::condition, left->line);
    condition->parts.push_back(std::move(left));
    condition->parts.push_back(parse_or());
    condition->parts.push_back(take_name("else") ? parse_expression() : nullptr);
    left = done(std::move(condition));
  }
  return left;
}

ExpressionPtr Parser::parse_or() {
  ExpressionPtr left = parse_and();
  while (take_name("or")) left = make_binary(Kind::logical_or, "or", std::move(left), parse_and());
  return left;
}

ExpressionPtr Parser::parse_and() {
  ExpressionPtr left = parse_not();
  while (take_name("and")) {
    left = make_binary(Kind::logical_and, "and", std::move(left), parse_not());
  }
  return left;
}

ExpressionPtr Parser::parse_not() {
  const Nested nested(*this);
  const int line = now().line;
  if (!take_name("not")) return parse_comparison();
  auto expression = make(Kind::logical_not, line);
  expression->parts.push_back(parse_not());
  return done(std::move(expression));
}

ExpressionPtr Parser::parse_comparison() {
  ExpressionPtr left = parse_sum();
  ExpressionPtr chain;
  while (true) {
    std::string op;
    for (const char* each : {"==", "!=", "<", "<=", ">", ">="}) {
      if (is_op(each)) op = each;
    }
    if (!op.empty()) {
      ++at_;
    } else if (take_name("in")) {
      op = "in";
    } else if (is_name("not") && ahead().kind == Token::Kind::name && ahead().text == "in") {
      at_ += 2;
      op = "not in";
    } else {
      return chain ? done(std::move(chain)) : std::move(left);
    }
    if (!chain) {
      chain = make(Kind::comparison, left->line);
      chain->parts.push_back(std::move(left));
    }
    chain->operators.push_back(op);
    chain->parts.push_back(parse_sum());
  }
}

ExpressionPtr Parser::parse_sum() {
  ExpressionPtr left = parse_concat();
  while (is_op("+") || is_op("-")) {
    const std::string op = tokens_[at_++].text;
    left = make_binary(Kind::binary, op, std::move(left), parse_concat());
  }
  return left;
}

ExpressionPtr Parser::parse_concat() {
  ExpressionPtr left = parse_product();
  if (!is_op("~")) return left;
  auto concat = make(Kind::concat, left->line);
  concat->parts.push_back(std::move(left));
  while (take_op("~")) concat->parts.push_back(parse_product());
  return done(std::move(concat));
}

ExpressionPtr Parser::parse_product() {
  ExpressionPtr left = parse_power();
  while (is_op("*") || is_op("/") || is_op("//") || is_op("%")) {
    const std::string op = tokens_[at_++].text;
    left = make_binary(Kind::binary, op, std::move(left), parse_power());
  }
  return left;
}

ExpressionPtr Parser::parse_power() {
  ExpressionPtr left = parse_unary();
  while (take_op("**")) left = make_binary(Kind::binary, "**", std::move(left), parse_unary());
  return left;
}

ExpressionPtr Parser::parse_unary(bool with_filter) {
  const Nested nested(*this);
  const int line = now().line;
  ExpressionPtr expression;
  if (is_op("-") || is_op("+")) {
    expression = make(is_op("-") ? Kind::negate : Kind::plus, line);
    ++at_;
    expression->parts.push_back(parse_unary(false));
    expression = done(std::move(expression));
  } else {
    expression = parse_primary();
  }
  expression = parse_postfix(std::move(expression));
  return with_filter ? parse_filters(std::move(expression)) : std::move(expression);
}

ExpressionPtr Parser::parse_primary() {
  const Token& token = now();
  if (token.kind == Token::Kind::name) {
    ++at_;
    auto constant = make(Kind::constant, token.line);
    if (token.text == "true" || token.text == "True")
      constant->value = Value(true);
    else if (token.text == "false" || token.text == "False")
      constant->value = Value(false);
    else if (token.text != "none" && token.text != "None")
      return make_name(token.text, token.line);
    return constant;
  }
  if (token.kind == Token::Kind::string) return parse_strings();
  if (token.kind == Token::Kind::integer || token.kind == Token::Kind::real) {
    auto constant = make(Kind::constant, token.line);
    const bool integer = token.kind == Token::Kind::integer;
    constant->value = integer ? Value(token.integer) : Value(token.real);
    ++at_;
    return constant;
  }
  if (take_op("(")) {
    ExpressionPtr inside = parse_tuple(true, true);
    expect_op(")");
    return inside;
  }
  if (is_op("[")) return parse_list();
  if (is_op("{")) return parse_dict();
  fail("expected an expression, found " + shown());
}

// Neighbouring strings are one.
ExpressionPtr Parser::parse_strings() {
  auto constant = make(Kind::constant, now().line);
  std::string text;
  while (now().kind == Token::Kind::string) text += tokens_[at_++].text;
  constant->value = Value(std::move(text));
  return constant;
}

ExpressionPtr Parser::parse_list() {
  auto list = make(Kind::list, now().line);
  expect_op("[");
  while (!is_op("]")) {
    if (!list->parts.empty()) expect_op(",");
    if (is_op("]")) break;
    list->parts.push_back(parse_expression());
  }
  expect_op("]");
  return done(std::move(list));
}

ExpressionPtr Parser::parse_dict() {
  auto dict = make(Kind::dict, now().line);
  expect_op("{");
  while (!is_op("}")) {
    if (!dict->parts.empty()) expect_op(",");
    if (is_op("}")) break;
    dict->parts.push_back(parse_expression());
    expect_op(":");
    dict->parts.push_back(parse_expression());
  }
  expect_op("}");
  return done(std::move(dict));
}

}  // namespace hearth::jinja
