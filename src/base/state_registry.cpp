#include "base/state_registry.h"

#include <memory>
#include <utility>

#include "base/error.h"

namespace hearth {

namespace {

std::function<void(StateComponent&)>& decorator() {
  static std::function<void(StateComponent&)> function;
  return function;
}

}  // namespace

void decorate_components(std::function<void(StateComponent&)> decorate) {
  decorator() = std::move(decorate);
}

void StateRegistry::add(StateComponent component) {
  if (decorator()) decorator()(component);
  HEARTH_CHECK(!component.name.empty() && component.views,
               "state: a component without name or views");
  for (const StateComponent& other : components_) {
    HEARTH_CHECK(other.name != component.name, "state: two components named " + component.name);
  }
  components_.push_back(std::move(component));
}

void StateRegistry::add_text(std::string name, std::function<std::string()> save,
                             std::function<void(const std::string&)> load) {
  struct Text {
    std::string buffer;
    bool loading = false;  // between prepare and restored, views shows what is being read
  };
  auto text = std::make_shared<Text>();

  StateComponent component;
  component.name = std::move(name);
  component.copied = true;
  component.views = [text, save = std::move(save)] {
    if (!text->loading) text->buffer = save();
    StateView view;
    view.name = "text";
    view.shape = {static_cast<int64_t>(text->buffer.size())};
    view.end = view.shape[0];
    view.bytes = std::as_writable_bytes(std::span(text->buffer));
    return std::vector<StateView>{std::move(view)};
  };
  component.prepare = [text](std::string_view, uint64_t bytes) {
    text->loading = true;
    text->buffer.assign(bytes, '\0');
  };
  component.restored = [text, load = std::move(load)] {
    text->loading = false;
    load(text->buffer);
  };
  add(std::move(component));
}

}  // namespace hearth
