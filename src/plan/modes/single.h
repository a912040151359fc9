// The planner `single`: one device and the host. Emits the lists of training, evaluation and
// decoding. Tasks run where their blocks are (Block::place), which is decided before.
#pragma once

#include <cstdint>
#include <optional>

#include "plan/schedule_builder.h"

namespace hearth {

/// Where blocks go: the routed experts to one place, all else to another or the same.
struct SinglePlacement {
  Place dense = kHostPlace;
  Place experts = kHostPlace;
};
/// Adapters go with their bases.
void place_blocks(ParameterTable& table, const SinglePlacement& placement);

/// A step in layer-major order: the micro-batches of a group pass each layer together, so that its
/// weights are read once for all of them. Activations grow with the group.
struct SingleTrainPlan {
  Schedule schedule;
  int64_t group = 1;
  bool recompute = false;  // blocks are computed again in backward instead of kept
};

/// The list for a given group and recompute.
Schedule single_train_schedule(const PlanInput& input, int64_t group, bool recompute);

/// The largest group whose arenas fit the budgets, bytes by place (places beyond them: no bound).
/// `recompute` unset: without, unless only with it a group of 1 fits. Returns a group of 1 even where
/// that does not fit: the caller compares `arena_bytes` with the budgets.
SingleTrainPlan plan_single_train(const PlanInput& input, std::optional<bool> recompute,
                                  const std::vector<uint64_t>& budgets);

/// Forward and loss of one micro-batch.
Schedule single_eval_schedule(const PlanInput& input);

/// Forward of new tokens behind `cache_rows` cached ones at most; logits of the last token.
Schedule single_decode_schedule(const PlanInput& input, int64_t cache_rows);

}  // namespace hearth
