// What planners have in common that take the micro-batches of each logical shard in groups.
#pragma once

#include "modes/layer_tasks.h"
#include "modes/planner.h"

namespace hearth {

/// A training step: shard by shard, group by group; then the updates.
class GroupedPlanner : public Planner {
 public:
  TrainSchedule train(const PlanInput& input, int64_t group, bool recompute) const final;

 private:
  /// Of a group: forward, losses and backward, but for the backward of the embedding.
  virtual void add_passes(LayerTasks& tasks, const PlanInput& input, RowRange rows,
                          bool recompute) const = 0;
};

}  // namespace hearth
