#include "modes/planner.h"

#include "modes/single.h"

namespace hearth {

std::span<const Planner* const> planners() {
  static const Planner* const all[] = {&single_planner()};
  return all;
}

}  // namespace hearth
