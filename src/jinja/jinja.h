// The template language of chat templates: a subset of Jinja, as transformers sets it up. Own
// lexer, parser and evaluator; the rest of the room sees this file alone.
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

/// What a template wrote.
struct Rendered {
  std::string text;
  std::vector<std::pair<size_t, size_t>> generated;  // {% generation %} blocks, bytes of the text
  bool generated_hidden = false;                     // one wrote where its place is not known
  struct Piece {  // of the text, by the turn of a loop over messages that wrote it
    int64_t message = -1;
    size_t begin = 0;
    size_t end = 0;
  };
  std::vector<Piece> pieces;
};

/// A parsed template. Immutable: threads may share it.
class Template {
 public:
  /// Input error naming `name` and the line for what cannot be parsed.
  Template(std::string_view source, std::string name);
  ~Template();
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;

  /// `variables` by name. Input error (name, line) for what the template raises, does wrong or
  /// takes beyond the limits; it begins with `where`.
  /// `limits.steps` is what is left afterwards.
  Rendered render(const std::vector<std::pair<std::string, Value>>& variables,
                  const std::string& date, const std::string& where, Limits& limits) const;

  bool marks_generation() const;
  bool asks_date() const;  // names strftime_now

 private:
  std::unique_ptr<const Tree> tree_;
};

}  // namespace hearth::jinja
