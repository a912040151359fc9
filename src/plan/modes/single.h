// The planner `single`: one device. Emits the lists of training, evaluation and decoding.
#pragma once

#include <cstdint>
#include <optional>

#include "plan/schedule_builder.h"

namespace hearth {

/// A step in layer-major order: the micro-batches of a group pass each layer together, so that its
/// weights are read once for all of them. Activations grow with the group.
struct SingleTrainPlan {
  Schedule schedule;
  int64_t group = 1;
  bool recompute = false;  // blocks are computed again in backward instead of kept
};

/// The list for a given group and recompute.
Schedule single_train_schedule(const PlanInput& input, int64_t group, bool recompute);

/// The largest group whose arena fits `budget` bytes. `recompute` unset: without, unless only with
/// it a group of 1 fits. Returns a group of 1 even where that does not fit: the caller compares
/// `arena_bytes` with the budget.
SingleTrainPlan plan_single_train(const PlanInput& input, std::optional<bool> recompute,
                                  uint64_t budget);

/// Forward and loss of one micro-batch.
Schedule single_eval_schedule(const PlanInput& input);

/// Forward of new tokens behind `cache_rows` cached ones at most; logits of the last token.
Schedule single_decode_schedule(const PlanInput& input, int64_t cache_rows);

}  // namespace hearth
