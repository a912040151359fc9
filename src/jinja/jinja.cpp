#include "jinja/jinja.h"

#include "base/error.h"
#include "jinja/evaluator.h"
#include "jinja/parser.h"

namespace hearth::jinja {
namespace {

std::string place(const std::string& name, int line) {
  return "chat template " + name + ", line " + std::to_string(line) + ": ";
}

}  // namespace

Template::Template(std::string_view source, std::string name) {
  try {
    tree_ = std::make_unique<const Tree>(parse(source, name));
  } catch (const TemplateSyntaxError& error) {
    throw input_error(place(name, error.line) + error.message);
  }
}

Template::~Template() = default;
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;

Rendered Template::render(const std::vector<std::pair<std::string, Value>>& variables,
                          const std::string& date, const std::string& where, Limits& limits) const {
  const Meter meter(limits);
  Evaluator evaluator(*tree_, date);
  for (const auto& [name, value] : variables) evaluator.define(name, value);
  try {
    evaluator.run();
    limits.steps = meter.steps_left();
  } catch (const TemplateError& error) {
    limits.steps = meter.steps_left();
    throw input_error(where + ": " + place(tree_->name, evaluator.line()) + error.what());
  }
  Rendered rendered;
  rendered.text = evaluator.output();
  rendered.generated = evaluator.generated();
  rendered.generated_hidden = evaluator.generated_hidden();
  for (const Piece& piece : evaluator.pieces()) {
    rendered.pieces.push_back({piece.message, piece.begin, piece.end});
  }
  return rendered;
}

bool Template::marks_generation() const { return tree_->marks_generation; }
bool Template::asks_date() const { return tree_->asks_date; }

}  // namespace hearth::jinja
