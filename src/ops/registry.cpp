#include "ops/registry.h"

namespace hearth {
namespace {

std::vector<const OpSet*>& known() {
  static std::vector<const OpSet*> sets;
  return sets;
}

}  // namespace

const std::vector<const OpSet*>& op_sets() { return known(); }

void register_op_set(const OpSet& ops) {
  for (const OpSet* other : known()) {
    HEARTH_CHECK(other->name() != ops.name(), "two op sets of one name");
  }
  known().push_back(&ops);
}

const OpSet& find_op_set(std::string_view name) {
  std::string names;
  for (const OpSet* ops : known()) {
    if (ops->name() == name) return *ops;
    names += (names.empty() ? "" : ", ") + std::string(ops->name());
  }
  throw usage_error("no op set " + quoted(name) +
                    " in this build; there are: " + (names.empty() ? "none" : names));
}

}  // namespace hearth
