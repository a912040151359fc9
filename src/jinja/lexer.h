// A Jinja template as tokens: text between tags; names, literals and operators inside tags.
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
  std::string text;     // for a string: its content, unescaped
  int64_t integer = 0;  // if kind is `integer`
  double real = 0;      // if kind is `real`
};

/// Tokenises a template as transformers configures Jinja: trim_blocks and lstrip_blocks on, one
/// newline at the end of the template dropped, Jinja's "-" and "+" in tags. Drops comments; raw
/// blocks become text. The last token is `end`. Throws TemplateSyntaxError.
std::vector<Token> cut(std::string_view source);

/// A template that cannot be parsed.
struct TemplateSyntaxError {
  int line = 0;
  std::string message;
};

}  // namespace hearth::jinja
