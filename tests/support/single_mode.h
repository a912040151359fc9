// The planner `single`, and placements of blocks, for tests of schedules.
#pragma once

#include <algorithm>
#include <optional>

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

/// `train_within` for given arena budgets, in bytes by place. Places beyond the end of `budgets`
/// have no limit.
inline TrainSchedule single_train_within(const PlanInput& input, std::optional<bool> recompute,
                                         const std::vector<uint64_t>& budgets) {
  return single_planner().train_within(input, recompute, [&](const TrainSchedule& train) {
    const std::vector<size_t>& arenas = train.schedule.arena_bytes;
    for (size_t place = 0; place < std::min(budgets.size(), arenas.size()); ++place) {
      if (arenas[place] > budgets[place]) return false;
    }
    return true;
  });
}

/// Places blocks by what the table alone says of the model.
inline void place_blocks(ParameterTable& table, const Placement& placement) {
  ModelSpec spec;
  for (const Block& block : table.blocks()) {
    spec.layers = std::max<int64_t>(spec.layers, block.layer + 1);
    spec.experts = std::max<int64_t>(spec.experts, block.expert + 1);
  }
  spec.tied_head = table.tensor(table.head_weight()).slot == Slot::embedding;
  hearth::place_blocks(table, spec, placement);
}

}  // namespace hearth::test
