#include "modes/zebra.h"

#include "modes/grouped.h"
#include "plan/zebra/zebra_order.h"

namespace hearth {

namespace {

/// Attention of a stage (plan/zebra/zebra_times.h): up to where rows leave.
void add_stage(LayerTasks& tasks, Phase phase, int32_t at, int32_t layers, int32_t m,
               bool recompute) {
  if (phase == Phase::forward) {
    if (at == 0 && tasks.has_tokens()) tasks.add_embed(phase, m);
    if (at > 0) tasks.end_layer(at - 1, m);
    if (at < layers) tasks.begin_layer(at, m);
    if (at == layers && tasks.has_tokens()) tasks.add_head(m);
    return;
  }
  if (at < layers) tasks.end_layer_backward(at, m);
  if (at > 0) tasks.begin_layer_backward(at - 1, m, recompute);
}

/// The last group may have fewer micro-batches than the order.
ZebraOrder order_of_group(const PlanInput& input, int32_t layers, int32_t micro_batches) {
  const bool fits = is_zebra_order(input.zebra_order, layers, micro_batches);
  return fits ? input.zebra_order : theorem_1_order(layers, micro_batches);
}

class ZebraPlanner final : public GroupedPlanner {
 public:
  std::string_view name() const override { return "zebra"; }

 private:
  void add_passes(LayerTasks& tasks, const PlanInput& input, RowRange rows,
                  bool recompute) const override {
    const auto layers = static_cast<int32_t>(input.spec.layers);
    for (const auto& [experts, phase, at, m] : order_of_group(input, layers, rows.count())) {
      if (experts) {
        tasks.compute_experts(phase, at, rows.begin + m, recompute && phase == Phase::backward);
      } else {
        add_stage(tasks, phase, at, layers, rows.begin + m, recompute);
      }
    }
  }
};

}  // namespace

const Planner& zebra_planner() {
  static const ZebraPlanner one;
  return one;
}

}  // namespace hearth
