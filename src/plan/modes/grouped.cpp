#include "modes/grouped.h"

#include <algorithm>

namespace hearth {

TrainSchedule GroupedPlanner::train(const PlanInput& input, int64_t group, bool recompute) const {
  LayerTasks tasks(input, Pass::train);
  const auto add_embeds = [&](RowRange rows) {
    for (int32_t m = rows.begin; tasks.has_tokens() && m < rows.end; ++m) {
      tasks.add_embed(Phase::backward, m);
    }
  };
  const bool embeds_last = embedding_waits_for_heads(input);
  const auto of_shard = static_cast<int32_t>(input.micro_batches_of_shard());
  for (int32_t shard = 0; shard < input.shards.count(); ++shard) {
    const int32_t first = shard * of_shard, end = first + of_shard;
    for (int32_t begin = first; begin < end; begin += static_cast<int32_t>(group)) {
      const RowRange rows{begin, std::min(end, begin + static_cast<int32_t>(group))};
      add_passes(tasks, input, rows, recompute);
      if (!embeds_last) add_embeds(rows);
    }
    if (embeds_last) add_embeds({first, end});
    tasks.end_shard(shard);
  }
  tasks.add_updates();
  return {tasks.finish(),
          group,
          recompute,
          0,
          input.inputs_on_host,
          input.shards.expert_shift,
          input.zebra_order,
          input.shards.levels,
          input.shards.fetched_from};
}

}  // namespace hearth
