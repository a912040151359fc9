// The planner `single`: one device and the host. It makes the schedules of training, evaluation and
// decoding. A task runs where its blocks live (Block::place); that is decided before.
#pragma once

#include <cstdint>
#include <optional>

#include "plan/schedule_builder.h"

namespace hearth {

/// Where blocks live: the routed experts at one place, all other blocks at another or the same.
struct SinglePlacement {
  Place dense = kHostPlace;
  Place experts = kHostPlace;
};
/// Sets Block::place of every block. Adapters live where their bases live.
void place_blocks(ParameterTable& table, const SinglePlacement& placement);

/// A step in layer-major order: the micro-batches of a group pass each layer together, so the layer's
/// weights are read once for the whole group. The memory of activations grows with the group.
struct SingleTrainPlan {
  Schedule schedule;
  int64_t group = 1;
  bool recompute = false;  // backward computes activations again instead of keeping them
};

/// The schedule for this group and recompute.
Schedule single_train_schedule(const PlanInput& input, int64_t group, bool recompute);

/// The schedule with the largest group whose arenas fit the budgets: bytes by place; places without an
/// entry are unlimited. If `recompute` is unset, it is used only if a group of 1 does not fit without
/// it. If nothing fits, returns a group of 1: the caller compares `arena_bytes` with the budgets.
SingleTrainPlan plan_single_train(const PlanInput& input, std::optional<bool> recompute,
                                  const std::vector<uint64_t>& budgets);

/// Forward and loss of one micro-batch.
Schedule single_eval_schedule(const PlanInput& input);

/// Forward of new tokens that follow at most `cache_rows` cached tokens; logits of the last token.
Schedule single_decode_schedule(const PlanInput& input, int64_t cache_rows);

}  // namespace hearth
