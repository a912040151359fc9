#include "modes/single.h"

#include <algorithm>

#include "modes/layer_tasks.h"

namespace hearth {

namespace {

/// Of a group: forward, losses and backward, up to the embedding.
void add_passes(LayerTasks& tasks, const PlanInput& input, RowRange rows, bool recompute) {
  const auto layers = static_cast<int32_t>(input.spec.layers);
  const auto [begin, end] = rows;
  for (int32_t m = begin; m < end; ++m) tasks.add_embed(Phase::forward, m);
  for (int32_t layer = 0; layer < layers; ++layer) tasks.add_layer(layer, {begin, end});
  for (int32_t m = begin; m < end; ++m) tasks.add_head(m);
  for (int32_t layer = layers - 1; layer >= 0; --layer) {
    tasks.add_layer_backward(layer, {begin, end}, recompute);
  }
}

void add_embeds(LayerTasks& tasks, RowRange rows) {
  for (int32_t m = rows.begin; m < rows.end; ++m) tasks.add_embed(Phase::backward, m);
}

class SinglePlanner final : public Planner {
 public:
  explicit SinglePlanner(std::string_view name) : name_(name) {}
  std::string_view name() const override { return name_; }

  TrainSchedule train(const PlanInput& input, int64_t group, bool recompute) const override {
    LayerTasks tasks(input, Pass::train);
    const bool embeds_last = embedding_waits_for_heads(input);
    const auto of_shard = static_cast<int32_t>(input.micro_batches_of_shard());
    for (int32_t shard = 0; shard < input.shards.count(); ++shard) {
      const int32_t first = shard * of_shard, end = first + of_shard;
      for (int32_t begin = first; begin < end; begin += static_cast<int32_t>(group)) {
        const RowRange rows{begin, std::min(end, begin + static_cast<int32_t>(group))};
        add_passes(tasks, input, rows, recompute);
        if (!embeds_last) add_embeds(tasks, rows);
      }
      if (embeds_last) add_embeds(tasks, {first, end});
      tasks.end_shard(shard);
    }
    tasks.add_updates();
    return {tasks.finish(), group, recompute};
  }

  Schedule drain(const PlanInput& input) const override { return drain_schedule(input); }
  Schedule eval(const PlanInput& input) const override {
    return forward_schedule(input, Pass::eval, 0);
  }
  Schedule decode(const PlanInput& input, int64_t cache_rows) const override {
    return forward_schedule(input, Pass::decode, cache_rows);
  }

 private:
  const std::string_view name_;
};

}  // namespace

const Planner& single_planner() {
  static const SinglePlanner one("single");
  return one;
}

const Planner& dp_planner() {
  static const SinglePlanner one("dp");
  return one;
}

const Planner& ep_planner() {
  static const SinglePlanner one("ep");
  return one;
}

}  // namespace hearth
