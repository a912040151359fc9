#include "modes/zebra.h"

#include <algorithm>

#include "modes/layer_tasks.h"

namespace hearth {

namespace {

void add_forward(LayerTasks& tasks, int32_t layers, RowRange rows) {
  const auto [begin, end] = rows;
  for (int32_t m = begin; tasks.has_tokens() && m < end; ++m) tasks.add_embed(Phase::forward, m);
  for (int32_t layer = 0; layer < layers; ++layer) {
    for (int32_t m = begin; m < end; ++m) {
      if (layer > 0) tasks.end_layer(layer - 1, m);
      tasks.begin_layer(layer, m);
    }
    for (int32_t m = begin; m < end; ++m) {
      tasks.compute_experts(Phase::forward, layer, m, false);
    }
  }
}

void add_backward(LayerTasks& tasks, int32_t layers, RowRange rows, bool recompute) {
  const auto [begin, end] = rows;
  for (int32_t layer = layers - 1; layer >= 0; --layer) {
    for (int32_t m = begin; m < end; ++m) {
      if (layer + 1 < layers) {
        tasks.end_layer_backward(layer + 1, m);
      } else {
        tasks.end_layer(layer, m);
        if (tasks.has_tokens()) tasks.add_head(m);
      }
      tasks.begin_layer_backward(layer, m, recompute);
    }
    for (int32_t m = begin; m < end; ++m) {
      tasks.compute_experts(Phase::backward, layer, m, recompute);
    }
  }
  for (int32_t m = begin; m < end; ++m) tasks.end_layer_backward(0, m);
}

void add_token_gradients(LayerTasks& tasks, RowRange rows) {
  for (int32_t m = rows.begin; tasks.has_tokens() && m < rows.end; ++m) {
    tasks.add_embed(Phase::backward, m);
  }
}

class ZebraPlanner final : public Planner {
 public:
  std::string_view name() const override { return "zebra"; }

  TrainSchedule train(const PlanInput& input, int64_t group, bool recompute) const override {
    LayerTasks tasks(input, Pass::train);
    const auto layers = static_cast<int32_t>(input.spec.layers);
    const bool embeds_last = embedding_waits_for_heads(input);
    const auto of_shard = static_cast<int32_t>(input.micro_batches_of_shard());
    for (int32_t shard = 0; shard < input.shards.count(); ++shard) {
      const int32_t first = shard * of_shard, end = first + of_shard;
      for (int32_t begin = first; begin < end; begin += static_cast<int32_t>(group)) {
        const RowRange rows{begin, std::min(end, begin + static_cast<int32_t>(group))};
        add_forward(tasks, layers, rows);
        add_backward(tasks, layers, rows, recompute);
        if (!embeds_last) add_token_gradients(tasks, rows);
      }
      if (embeds_last) add_token_gradients(tasks, {first, end});
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
};

}  // namespace

const Planner& zebra_planner() {
  static const ZebraPlanner one;
  return one;
}

}  // namespace hearth
