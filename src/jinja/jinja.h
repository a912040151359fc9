// The template language of chat templates: a subset of Jinja, as transformers sets it up. With its
// own lexer, parser and evaluator. Callers outside src/jinja include only this header.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/meter.h"
#include "jinja/value.h"

namespace hearth::jinja {

struct Tree;

/// The output of a template.
struct Rendered {
  std::string text;
  std::vector<std::pair<size_t, size_t>> generated;  // bytes of {% generation %} blocks
  bool generated_hidden = false;                     // a block's place in the text is unknown
  struct Piece {  // bytes that the loop over messages wrote for one message
    int64_t message = -1;
    size_t begin = 0;
    size_t end = 0;
  };
  std::vector<Piece> pieces;
};

/// A parsed template. Immutable: threads may share it.
class Template {
 public:
  /// Input error with `name` and the line if the source cannot be parsed.
  Template(std::string_view source, std::string name);
  ~Template();
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;

  /// `variables` by name. Throws an input error if the template raises, fails or exceeds the
  /// limits. Its message starts with `where` and names template and line. Sets `limits.steps` to
  /// the steps left.
  Rendered render(const std::vector<std::pair<std::string, Value>>& variables,
                  const std::string& date, const std::string& where, Limits& limits) const;

  bool marks_generation() const;
  bool asks_date() const;  // whether it names strftime_now

 private:
  std::unique_ptr<const Tree> tree_;
};

}  // namespace hearth::jinja
