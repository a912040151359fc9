// The planner `single`, for tests of schedules.
#pragma once

#include "modes/single.h"

namespace hearth::test {

inline Schedule single_train_schedule(const PlanInput& input, int64_t group, bool recompute) {
  return single_planner().train(input, group, recompute).schedule;
}
inline Schedule single_eval_schedule(const PlanInput& input) {
  return single_planner().eval(input);
}
inline Schedule single_decode_schedule(const PlanInput& input, int64_t cache_rows) {
  return single_planner().decode(input, cache_rows);
}
inline void place_blocks(ParameterTable& table, const Placement& placement) {
  single_planner().place_blocks(table, placement);
}

}  // namespace hearth::test
