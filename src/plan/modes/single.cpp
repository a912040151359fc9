#include "modes/single.h"

#include <algorithm>

#include "modes/layer_tasks.h"

namespace hearth {

namespace {

class SinglePlanner final : public Planner {
 public:
  std::string_view name() const override { return "single"; }

  TrainSchedule train(const PlanInput& input, int64_t group, bool recompute) const override {
    LayerTasks tasks(input, Pass::train);
    const bool embeds_last = embedding_waits_for_heads(input);
    const auto layers = static_cast<int32_t>(input.spec.layers);
    const auto count = static_cast<int32_t>(input.micro_batches);
    for (int32_t begin = 0; begin < count; begin += static_cast<int32_t>(group)) {
      const int32_t end = std::min(count, begin + static_cast<int32_t>(group));
      for (int32_t m = begin; m < end; ++m) tasks.add_embed(Phase::forward, m);
      for (int32_t layer = 0; layer < layers; ++layer) tasks.add_layer(layer, {begin, end});
      for (int32_t m = begin; m < end; ++m) tasks.add_head(m);
      for (int32_t layer = layers - 1; layer >= 0; --layer) {
        tasks.add_layer_backward(layer, {begin, end}, recompute);
      }
      if (embeds_last) continue;
      for (int32_t m = begin; m < end; ++m) tasks.add_embed(Phase::backward, m);
    }
    for (int32_t m = 0; embeds_last && m < count; ++m) tasks.add_embed(Phase::backward, m);
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

const Planner& single_planner() {
  static const SinglePlanner one;
  return one;
}

}  // namespace hearth
