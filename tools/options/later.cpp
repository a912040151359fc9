#include "options/later.h"

#include "options/option_lookup.h"

namespace hearth {

const std::vector<LaterOption>& later_options() {
  static const std::vector<LaterOption> options;  // none at present
  return options;
}

const LaterOption* find_later_option(std::string_view spelling) {
  const std::string name = with_hyphens(spelling);
  for (const LaterOption& option : later_options()) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

}  // namespace hearth
