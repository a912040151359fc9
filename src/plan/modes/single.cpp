#include "modes/single.h"

#include "modes/grouped.h"

namespace hearth {

namespace {

class SinglePlanner final : public GroupedPlanner {
 public:
  explicit SinglePlanner(std::string_view name) : name_(name) {}
  std::string_view name() const override { return name_; }

 private:
  void add_passes(LayerTasks& tasks, const PlanInput& input, RowRange rows,
                  bool recompute) const override {
    const auto layers = static_cast<int32_t>(input.spec.layers);
    const auto [begin, end] = rows;
    const bool is_last = end == input.micro_batches;
    for (int32_t m = begin; m < end; ++m) tasks.add_embed(Phase::forward, m);
    for (int32_t layer = 0; layer < layers; ++layer) tasks.add_layer(layer, {begin, end});
    for (int32_t m = begin; m < end; ++m) tasks.add_head(m);
    if (is_last) tasks.add_reduce(layers);
    for (int32_t layer = layers - 1; layer >= 0; --layer) {
      tasks.add_layer_backward(layer, {begin, end}, recompute);
      if (is_last) tasks.add_reduce(layer);
    }
  }

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

const Planner& hybrid_ep_planner() {
  static const SinglePlanner one("hybrid-ep");
  return one;
}

const Planner& ep_planner() {
  static const SinglePlanner one("ep");
  return one;
}

}  // namespace hearth
