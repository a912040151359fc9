// What stands behind an expression: attributes, items, slices, calls, filters and tests.
#include "base/error.h"
#include "jinja/filters.h"
#include "jinja/nested.h"
#include "jinja/parser.h"
#include "jinja/tests.h"

namespace hearth::jinja {

ExpressionPtr Parser::parse_postfix(ExpressionPtr of) {
  while (true) {
    if (is_op(".") || is_op("[")) {
      of = parse_subscript(std::move(of));
    } else if (is_op("(")) {
      of = parse_call(std::move(of));
    } else {
      return of;
    }
  }
}

ExpressionPtr Parser::parse_filters(ExpressionPtr of) {
  while (true) {
    if (is_op("|")) {
      of = parse_filter(std::move(of));
    } else if (is_name("is")) {
      of = parse_test(std::move(of));
    } else if (is_op("(")) {
      of = parse_call(std::move(of));
    } else {
      return of;
    }
  }
}

// `of` is null in blocks, whose content is filtered; there the first "|" may be missing.
ExpressionPtr Parser::parse_filter(ExpressionPtr of) {
  take_op("|");
  auto filter = make(Kind::filter, now().line);
  filter->text = expect_name();
  if (find_filter(filter->text) == nullptr) fail("unknown filter " + quoted(filter->text));
  filter->parts.push_back(std::move(of));
  if (is_op("(")) filter->call = parse_arguments();
  return done(std::move(filter));
}

ExpressionPtr Parser::parse_test(ExpressionPtr of) {
  auto test = make(Kind::test, now().line);
  ++at_;
  const bool negated = take_name("not");
  test->text = expect_name();
  if (find_test(test->text) == nullptr) fail("unknown test " + quoted(test->text));
  test->parts.push_back(std::move(of));
  const Token::Kind kind = now().kind;
  const bool name = kind == Token::Kind::name;
  if (is_op("(")) {
    test->call = parse_arguments();
  } else if ((name && !is_name("else") && !is_name("or") && !is_name("and")) ||
             kind == Token::Kind::string || kind == Token::Kind::integer ||
             kind == Token::Kind::real || is_op("[") || is_op("{")) {
    if (is_name("is")) fail("tests cannot be chained with is");
    test->call.positional.push_back(parse_postfix(parse_primary()));
  }
  test = done(std::move(test));
  if (!negated) return test;
  auto negation = make(Kind::logical_not, test->line);
  negation->parts.push_back(std::move(test));
  return done(std::move(negation));
}

ExpressionPtr Parser::parse_subscript(ExpressionPtr of) {
  const int line = now().line;
  if (take_op(".")) {
    if (now().kind == Token::Kind::integer) {
      auto index = parse_primary();
      return make_binary(Kind::item, "", std::move(of), std::move(index));
    }
    auto attribute = make(Kind::attribute, line);
    attribute->text = expect_name();
    attribute->parts.push_back(std::move(of));
    return done(std::move(attribute));
  }
  expect_op("[");
  std::vector<ExpressionPtr> parts(1);
  parts[0] = is_op(":") ? nullptr : parse_expression();
  if (parts[0] && !is_op(":")) {
    if (is_op(",")) fail("an item of several numbers is not supported");
    expect_op("]");
    return make_binary(Kind::item, "", std::move(of), std::move(parts[0]));
  }
  auto slice = make(Kind::slice, line);
  slice->parts.push_back(std::move(of));
  slice->parts.push_back(std::move(parts[0]));
  expect_op(":");
  slice->parts.push_back(is_op(":") || is_op("]") ? nullptr : parse_expression());
  const bool step = take_op(":") && !is_op("]");
  slice->parts.push_back(step ? parse_expression() : nullptr);
  expect_op("]");
  return done(std::move(slice));
}

ExpressionPtr Parser::parse_call(ExpressionPtr of) {
  auto call = make(Kind::call, now().line);
  call->parts.push_back(std::move(of));
  call->call = parse_arguments();
  return done(std::move(call));
}

CallNode Parser::parse_arguments() {
  const Nested nested(*this);
  CallNode call;
  expect_op("(");
  for (bool first = true; !is_op(")"); first = false) {
    if (!first) expect_op(",");
    if (is_op(")")) break;
    parse_argument(call);
  }
  expect_op(")");
  return call;
}

void Parser::parse_argument(CallNode& call) {
  if (take_op("*")) {
    if (call.list || call.dict) fail("a call with two lists of arguments");
    call.list = parse_expression();
  } else if (take_op("**")) {
    if (call.dict) fail("a call with two sets of named arguments");
    call.dict = parse_expression();
  } else if (now().kind == Token::Kind::name && ahead().kind == Token::Kind::op &&
             ahead().text == "=") {
    const std::string name = now().text;
    at_ += 2;
    call.named.emplace_back(name, parse_expression());
  } else {
    if (call.list || call.dict || !call.named.empty()) {
      fail("an argument without a name after named ones");
    }
    call.positional.push_back(parse_expression());
  }
}

}  // namespace hearth::jinja
