// A Jinja template as tokens: literal text, and names, literals and operators inside of tags.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::jinja {

struct Token {
  enum class Kind : uint8_t {
    text,             // between tags
    statement_begin,  // {%
    statement_end,
    output_begin,  // {{
    output_end,
    name,
    string,
    integer,
    real,
    op,  // one of + - * / // % ** ~ [ ] ( ) { } == != > >= < <= = . : | , ;
    end,
  };
  Kind kind = Kind::end;
  int line = 1;
  std::string text;     // of strings: without quotes and escapes
  int64_t integer = 0;  // of integers
  double real = 0;      // of reals
};

/// Cuts a template as transformers sets Jinja up: trim_blocks and lstrip_blocks on, one newline at
/// the end of the template dropped, "-" and "+" in tags as Jinja has them. Comments are left out,
/// raw blocks are text. The last token is `end`. TemplateSyntaxError for what cannot be cut.
std::vector<Token> cut(std::string_view source);

/// A template that cannot be parsed.
struct TemplateSyntaxError {
  int line = 0;
  std::string message;
};

}  // namespace hearth::jinja
