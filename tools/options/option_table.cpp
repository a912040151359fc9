#include "options/option_table.h"

#include "options/groups.h"

namespace hearth {

const std::vector<Option>& option_table() {
  static const std::vector<Option> table = [] {
    std::vector<Option> t;
    add_what(t);
    add_lora(t);
    add_batch(t);
    add_optimizer(t);
    add_data(t);
    add_run(t);
    add_state(t);
    add_generation(t);
    add_simulation(t);
    add_output(t);
    return t;
  }();
  return table;
}

HelpFor Option::help_of(Command command) const {
  HelpFor shown{{}, help, default_text, value.placeholder};
  for (const HelpFor& own : help_for) {
    if (!own.commands.contains(command)) continue;
    shown.help = own.help;
    if (!own.default_text.empty()) shown.default_text = own.default_text;
    if (!own.placeholder.empty()) shown.placeholder = own.placeholder;
  }
  if (shown.default_text.empty()) {
    const std::string own = value.get(Options{});
    if (own != "null" && own != "[]") shown.default_text = own;
  }
  return shown;
}

}  // namespace hearth
