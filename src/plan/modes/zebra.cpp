#include "modes/zebra.h"

#include "modes/grouped.h"

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

class ZebraPlanner final : public GroupedPlanner {
 public:
  std::string_view name() const override { return "zebra"; }

 private:
  void add_passes(LayerTasks& tasks, const PlanInput& input, RowRange rows,
                  bool recompute) const override {
    const auto layers = static_cast<int32_t>(input.spec.layers);
    add_forward(tasks, layers, rows);
    add_backward(tasks, layers, rows, recompute);
  }
};

}  // namespace

const Planner& zebra_planner() {
  static const ZebraPlanner one;
  return one;
}

}  // namespace hearth
