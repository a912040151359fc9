#include "jinja/parser.h"

#include <algorithm>

#include "base/error.h"
#include "jinja/nested.h"

namespace hearth::jinja {
namespace {

constexpr int kMaxNodes = 1'000'000;

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Tree parse(std::string_view source, std::string name) {
  Tree tree;
  tree.name = std::move(name);
  Parser(source, tree).run();
  return tree;
}

Parser::Parser(std::string_view source, Tree& tree) : tokens_(cut(source)), tree_(tree) {}

void Parser::run() {
  tree_.body = parse_body({});
  tree_.names.resize(numbers_.size());
  for (const auto& [name, number] : numbers_) tree_.names[static_cast<size_t>(number)] = name;
}

void Parser::fail(const std::string& message) const {
  throw TemplateSyntaxError{now().line, message};
}

std::string Parser::shown() const {
  switch (now().kind) {
    case Token::Kind::end: return "the end of the template";
    case Token::Kind::statement_end: return "the end of the tag %}";
    case Token::Kind::output_end: return "the end of the tag }}";
    case Token::Kind::integer: return "a number";
    case Token::Kind::real: return "a number";
    case Token::Kind::string: return "a string";
    default: return quoted(now().text);
  }
}

bool Parser::is_op(std::string_view op) const {
  return now().kind == Token::Kind::op && now().text == op;
}

bool Parser::is_name(std::string_view name) const {
  return now().kind == Token::Kind::name && now().text == name;
}

bool Parser::take_op(std::string_view op) {
  const bool found = is_op(op);
  at_ += found ? 1 : 0;
  return found;
}

bool Parser::take_name(std::string_view name) {
  const bool found = is_name(name);
  at_ += found ? 1 : 0;
  return found;
}

void Parser::expect_op(std::string_view op) {
  if (!take_op(op)) fail("expected '" + std::string(op) + "', found " + shown());
}

void Parser::expect(Token::Kind kind, const char* what) {
  if (now().kind != kind) fail("expected " + std::string(what) + ", found " + shown());
  ++at_;
}

std::string Parser::expect_name() {
  if (now().kind != Token::Kind::name) fail("expected a name, found " + shown());
  return tokens_[at_++].text;
}

int Parser::name_number(const std::string& name) {
  return numbers_.emplace(name, static_cast<int>(numbers_.size())).first->second;
}

StatementPtr Parser::make_statement(Statement::Kind kind) const {
  auto statement = std::make_unique<Statement>();
  statement->kind = kind;
  statement->line = now().line;
  return statement;
}

// Text, output and statements up to a tag whose name is one of `ends`; stands at that name then.
Body Parser::parse_body(const std::vector<std::string_view>& ends) {
  const Nested nested(*this);
  Body body;
  while (true) {
    switch (now().kind) {
      case Token::Kind::end:
        if (!ends.empty()) fail("the tag " + std::string(ends.back()) + " is missing");
        return body;
      case Token::Kind::text:
        body.push_back(make_statement(Statement::Kind::text));
        body.back()->text = Value(now().text);
        ++at_;
        break;
      case Token::Kind::output_begin:
        ++at_;
        body.push_back(make_statement(Statement::Kind::output));
        body.back()->value = parse_tuple(true);
        expect(Token::Kind::output_end, "the end of the tag }}");
        break;
      default:
        expect(Token::Kind::statement_begin, "a tag");
        if (now().kind == Token::Kind::name &&
            std::find(ends.begin(), ends.end(), now().text) != ends.end()) {
          return body;
        }
        body.push_back(parse_statement());
        expect(Token::Kind::statement_end, "the end of the tag %}");
    }
    if (++nodes_ > kMaxNodes) fail("the template is too long");
  }
}

// Behind the opening tag of a block: its body, up to the name of the tag that ends it.
Body Parser::parse_block_of(const std::vector<std::string_view>& ends) {
  take_op(":");
  expect(Token::Kind::statement_end, "the end of the tag %}");
  return parse_body(ends);
}

StatementPtr Parser::parse_statement() {
  if (now().kind != Token::Kind::name) fail("expected the name of a tag, found " + shown());
  const std::string tag = now().text;
  if (tag == "if") return parse_if();
  if (tag == "for") return parse_for();
  if (tag == "set") return parse_set();
  if (tag == "macro") return parse_macro();
  if (tag == "call") return parse_call_block();
  if (tag == "filter") return parse_filter_block();
  if (tag == "with") return parse_with();
  if (tag == "print") return parse_print();
  if (tag == "generation" || tag == "block" || tag == "autoescape") return parse_scope(tag);
  if (tag == "break" || tag == "continue") {
    auto statement =
        make_statement(tag == "break" ? Statement::Kind::leave : Statement::Kind::next);
    ++at_;
    return statement;
  }
  if (is_one_of(tag, {"include", "import", "from", "extends"})) {
    fail("the tag " + tag + " is not supported: a chat template cannot read files");
  }
  fail("unknown tag " + quoted(tag));
}

StatementPtr Parser::parse_if() {
  auto statement = make_statement(Statement::Kind::condition);
  ++at_;
  statement->value = parse_tuple(false);
  statement->body = parse_block_of({"elif", "else", "endif"});
  if (is_name("elif")) {
    const Nested nested(*this);
    statement->otherwise.push_back(parse_if());  // takes the endif
    return statement;
  }
  if (take_name("else")) statement->otherwise = parse_block_of({"endif"});
  ++at_;
  return statement;
}

StatementPtr Parser::parse_for() {
  auto statement = make_statement(Statement::Kind::loop);
  ++at_;
  statement->target = parse_target(false);
  if (!take_name("in")) fail("expected 'in', found " + shown());
  statement->value = parse_tuple(false, false, "recursive");
  if (take_name("if")) statement->filter = parse_expression();
  if (is_name("recursive")) fail("recursive loops are not supported");
  statement->name = name_number("loop");
  statement->body = parse_block_of({"else", "endfor"});
  if (take_name("else")) statement->otherwise = parse_block_of({"endfor"});
  ++at_;
  return statement;
}

StatementPtr Parser::parse_set() {
  auto statement = make_statement(Statement::Kind::set);
  ++at_;
  statement->target = parse_target(true);
  if (take_op("=")) {
    statement->value = parse_tuple(true);
    return statement;
  }
  statement->kind = Statement::Kind::set_block;
  while (is_op("|")) statement->filter = parse_filter(std::move(statement->filter));
  statement->body = parse_block_of({"endset"});
  ++at_;
  return statement;
}

void Parser::parse_signature(Signature& signature) {
  expect_op("(");
  while (!is_op(")")) {
    if (!signature.parameters.empty()) expect_op(",");
    const std::string name = expect_name();
    signature.parameters.push_back(name_number(name));
    signature.parameter_names.push_back(name);
    if (take_op("=")) {
      signature.defaults.push_back(parse_expression());
    } else if (!signature.defaults.empty()) {
      fail("a parameter without a default after one with a default");
    }
  }
  expect_op(")");
}

StatementPtr Parser::parse_macro() {
  auto statement = make_statement(Statement::Kind::macro);
  ++at_;
  statement->signature = std::make_shared<Signature>();
  statement->signature->name = expect_name();
  statement->name = name_number(statement->signature->name);
  macros_.push_back(statement->signature.get());
  parse_signature(*statement->signature);
  statement->signature->body = parse_block_of({"endmacro"});
  macros_.pop_back();
  ++at_;
  return statement;
}

StatementPtr Parser::parse_call_block() {
  auto statement = make_statement(Statement::Kind::call_block);
  ++at_;
  statement->signature = std::make_shared<Signature>();
  macros_.push_back(statement->signature.get());
  if (is_op("(")) parse_signature(*statement->signature);
  macros_.pop_back();
  statement->value = parse_expression();
  if (statement->value->kind != Kind::call) fail("expected a call in the tag call");
  macros_.push_back(statement->signature.get());
  statement->signature->body = parse_block_of({"endcall"});
  macros_.pop_back();
  ++at_;
  return statement;
}

StatementPtr Parser::parse_filter_block() {
  auto statement = make_statement(Statement::Kind::filter_block);
  ++at_;
  do {
    statement->filter = parse_filter(std::move(statement->filter));
  } while (is_op("|"));
  statement->body = parse_block_of({"endfilter"});
  ++at_;
  return statement;
}

StatementPtr Parser::parse_with() {
  auto statement = make_statement(Statement::Kind::with);
  ++at_;
  while (now().kind != Token::Kind::statement_end) {
    if (!statement->targets.empty()) expect_op(",");
    statement->targets.push_back(parse_target(false));
    expect_op("=");
    statement->values.push_back(parse_expression());
  }
  statement->body = parse_block_of({"endwith"});
  ++at_;
  return statement;
}

StatementPtr Parser::parse_print() {
  auto statement = make_statement(Statement::Kind::output);
  ++at_;
  statement->value = make(Kind::concat, now().line);
  while (now().kind != Token::Kind::statement_end) {
    if (!statement->value->parts.empty()) expect_op(",");
    statement->value->parts.push_back(parse_expression());
  }
  return statement;
}

// generation, autoescape false, and blocks (without inheritance a block is its content).
StatementPtr Parser::parse_scope(const std::string& tag) {
  auto statement =
      make_statement(tag == "generation" ? Statement::Kind::generation : Statement::Kind::scope);
  ++at_;
  if (tag == "generation") {
    tree_.marks_generation = true;
  } else if (tag == "block") {
    fail("blocks are not supported: a chat template cannot inherit");
  } else if (!take_name("false") && !take_name("False")) {
    fail("autoescape is not supported");
  }
  const std::string end = "end" + tag;
  statement->body = parse_block_of({end});
  ++at_;
  return statement;
}

}  // namespace hearth::jinja
