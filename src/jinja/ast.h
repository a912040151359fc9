// The syntax tree of a template. A name is an index into the template's table of names.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jinja/value.h"

namespace hearth::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

/// The arguments of a call.
struct CallNode {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr list;  // *list
  ExpressionPtr dict;  // **dict
};

struct Expression {
  enum class Kind : uint8_t {
    constant,
    name,
    list,
    tuple,
    dict,       // parts: key, value, key, value, ...
    attribute,  // parts[0].text
    item,       // parts[0][parts[1]]
    slice,      // parts[0][parts[1]:parts[2]:parts[3]]; an absent bound is null
    call,       // parts[0](call)
    filter,     // parts[0] | text(call); parts[0] is null in a filter block: its content
    test,       // parts[0] is text(call)
    negate,     // -
    plus,       // +
    logical_not,
    logical_and,
    logical_or,
    binary,               // text: + - * / // % **
    concat,               // all parts, joined by ~
    comparison,           // parts[0] operators[0] parts[1] operators[1] ...
    condition,            // parts[0] if parts[1] else parts[2] (may be null)
    namespace_attribute,  // an assignment target: name.text
  };
  Kind kind = Kind::constant;
  int line = 0;
  int depth = 1;
  int name = -1;
  std::string text;
  Value value;
  std::vector<ExpressionPtr> parts;
  std::vector<std::string> operators;
  CallNode call;
};

struct Statement;
using StatementPtr = std::unique_ptr<Statement>;
using Body = std::vector<StatementPtr>;

/// Parameters and body of a macro or a call block.
struct Signature {
  std::string name;  // empty for a call block
  std::vector<int> parameters;
  std::vector<std::string> parameter_names;
  std::vector<ExpressionPtr> defaults;  // of the last parameters, in order
  bool takes_caller = false;            // the body names caller, varargs, kwargs
  bool takes_varargs = false;
  bool takes_kwargs = false;
  Body body;
};

struct Statement {
  enum class Kind : uint8_t {
    text,
    output,      // value
    condition,   // value, body, otherwise
    loop,        // for target in value if filter: body, otherwise
    set,         // target = value
    set_block,   // target = body | filter
    macro,       // name, signature
    call_block,  // value (a call), signature
    filter_block,
    with,  // targets[i] = values[i], body
    generation,
    leave,  // break
    next,   // continue
    scope,  // autoescape off, block: runs body in a scope of its own
  };
  Kind kind = Kind::text;
  int line = 0;
  int name = -1;
  Value text;
  ExpressionPtr target, value, filter;
  std::vector<ExpressionPtr> targets, values;
  std::shared_ptr<Signature> signature;
  Body body, otherwise;
};

struct Tree {
  std::string name;  // for messages
  std::vector<std::string> names;
  Body body;
  bool marks_generation = false;
  bool asks_date = false;  // names strftime_now
};

}  // namespace hearth::jinja
