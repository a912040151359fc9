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
    add_output(t);
    return t;
  }();
  return table;
}

}  // namespace hearth
