// Private to the parser: bounds the recursion, so a hostile template cannot exhaust the stack.
#pragma once

#include <string>

#include "jinja/parser.h"

namespace hearth::jinja {

struct Parser::Nested {
  explicit Nested(Parser& parser) : parser_(parser) {
    if (++parser_.nesting_ > kMaxNesting) {
      --parser_.nesting_;
      parser_.fail("nested deeper than " + std::to_string(kMaxNesting) + " levels");
    }
  }
  ~Nested() { --parser_.nesting_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  Parser& parser_;
};

}  // namespace hearth::jinja
