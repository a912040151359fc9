#include "modes/single.h"

#include <algorithm>
#include <set>

namespace hearth {

namespace {

/// A layer has a dense MLP, or routed experts with or without a shared expert.
bool has_mlp(const ModelSpec& spec, int32_t layer) {
  return !spec.has_experts(layer) || spec.has_shared_expert(layer);
}

/// Where the tasks of a model run: where their blocks live. Dispatch and combine have no blocks and
/// run where attention runs.
class Places {
 public:
  explicit Places(const PlanInput& input) : table_(input.table), spec_(input.spec) {}

  Place of(TaskKind kind, int32_t layer) const {
    switch (kind) {
      case TaskKind::embed: return of_block(BlockKind::embedding);
      case TaskKind::head: return of_block(BlockKind::head);
      case TaskKind::experts: return of_block(BlockKind::expert, layer, 0);
      case TaskKind::mlp:
        return of_block(spec_.has_shared_expert(layer) ? BlockKind::shared : BlockKind::dense,
                        layer);
      default: return of_block(BlockKind::attention, layer);
    }
  }

 private:
  Place of_block(BlockKind kind, int32_t layer = -1, int32_t expert = -1) const {
    return table_.block(table_.find_block(kind, layer, expert)).place;
  }
  const ParameterTable& table_;
  const ModelSpec& spec_;
};

/// The tasks of layers, each added to a schedule at its place.
class LayerTasks {
 public:
  LayerTasks(const PlanInput& input, Pass pass, int64_t cache_rows = 0)
      : input_(input), places_(input), builder_(input, pass, cache_rows) {}

  void add(TaskKind kind, Phase phase, int32_t layer, int32_t micro_batch) {
    builder_.add(kind, phase, layer, micro_batch, places_.of(kind, layer));
  }

  /// The forward tasks of a layer for one micro-batch. A recompute runs those whose values backward
  /// reads; the layer's output is not among them.
  void add_layer(Phase phase, int32_t layer, int32_t micro_batch) {
    add(TaskKind::attention, phase, layer, micro_batch);
    if (has_mlp(input_.spec, layer)) add(TaskKind::mlp, phase, layer, micro_batch);
    if (input_.spec.has_experts(layer)) {
      add(TaskKind::dispatch, phase, layer, micro_batch);
      add(TaskKind::experts, phase, layer, micro_batch);
    }
    if (phase == Phase::forward) add(TaskKind::combine, phase, layer, micro_batch);
  }

  void add_layer_backward(int32_t layer, int32_t micro_batch) {
    if (has_mlp(input_.spec, layer)) add(TaskKind::mlp, Phase::backward, layer, micro_batch);
    if (input_.spec.has_experts(layer)) {
      add(TaskKind::combine, Phase::backward, layer, micro_batch);
      add(TaskKind::experts, Phase::backward, layer, micro_batch);
      add(TaskKind::dispatch, Phase::backward, layer, micro_batch);
    }
    add(TaskKind::attention, Phase::backward, layer, micro_batch);
  }

  /// A norm task for every place with trained tensors, the clip task, and for each layer an update
  /// task for every place with blocks of that layer.
  void add_updates() {
    std::set<Place> trained, all;
    for (const Tensor& t : input_.table.tensors()) {
      const Place place = input_.table.block(t.block).place;
      all.insert(place);
      if (t.trainable) trained.insert(place);
    }
    for (const Place place : trained)
      builder_.add(TaskKind::norm, Phase::forward, place, -1, place);
    builder_.add(TaskKind::clip, Phase::forward, 0, -1);
    for (int32_t layer = -1; layer <= input_.spec.layers; ++layer) {
      for (const Place place : all) {
        if (!builder_.has_blocks(TaskKind::update, Phase::forward, layer, place)) continue;
        builder_.add(TaskKind::update, Phase::forward, layer, -1, place);
      }
    }
  }

  Schedule finish() { return builder_.finish(); }

 private:
  const PlanInput& input_;
  Places places_;
  ScheduleBuilder builder_;
};

Schedule forward_schedule(const PlanInput& input, Pass pass, int64_t cache_rows) {
  LayerTasks tasks(input, pass, cache_rows);
  const auto layers = static_cast<int32_t>(input.spec.layers);
  tasks.add(TaskKind::embed, Phase::forward, 0, 0);
  for (int32_t layer = 0; layer < layers; ++layer) tasks.add_layer(Phase::forward, layer, 0);
  tasks.add(TaskKind::head, Phase::forward, layers, 0);
  return tasks.finish();
}

class SinglePlanner final : public Planner {
 public:
  std::string_view name() const override { return "single"; }

  void place_blocks(ParameterTable& table, const Placement& placement) const override {
    for (BlockId id = 0; id < std::ssize(table.blocks()); ++id) {
      const Block& own = table.block(id);
      const Block& block = own.kind == BlockKind::adapter ? table.block(own.base) : own;
      table.set_place(id, block.kind == BlockKind::expert ? placement.experts : placement.dense);
    }
  }

  TrainSchedule train(const PlanInput& input, int64_t group, bool recompute) const override {
    LayerTasks tasks(input, Pass::train);
    const auto layers = static_cast<int32_t>(input.spec.layers);
    const auto count = static_cast<int32_t>(input.micro_batches);
    for (int32_t begin = 0; begin < count; begin += static_cast<int32_t>(group)) {
      const int32_t end = std::min(count, begin + static_cast<int32_t>(group));
      for (int32_t m = begin; m < end; ++m) tasks.add(TaskKind::embed, Phase::forward, 0, m);
      for (int32_t layer = 0; layer < layers; ++layer) {
        for (int32_t m = begin; m < end; ++m) tasks.add_layer(Phase::forward, layer, m);
      }
      for (int32_t m = begin; m < end; ++m) tasks.add(TaskKind::head, Phase::forward, layers, m);
      for (int32_t layer = layers - 1; layer >= 0; --layer) {
        for (int32_t m = begin; m < end; ++m) {
          if (recompute) tasks.add_layer(Phase::recompute, layer, m);
          tasks.add_layer_backward(layer, m);
        }
      }
      for (int32_t m = begin; m < end; ++m) tasks.add(TaskKind::embed, Phase::backward, 0, m);
    }
    tasks.add_updates();
    return {tasks.finish(), group, recompute};
  }

  TrainSchedule train_within(const PlanInput& input, std::optional<bool> recompute,
                             const FitTest& fits) const override {
    const bool again = recompute.value_or(false);
    TrainSchedule whole = train(input, input.micro_batches, again);
    if (fits(whole)) return whole;
    TrainSchedule best = train(input, 1, again);
    if (!fits(best)) return recompute ? std::move(best) : train(input, 1, true);
    // Memory grows with the group: bisect for the largest that fits.
    int64_t low = 1, high = input.micro_batches - 1;
    while (low < high) {
      const int64_t middle = (low + high + 1) / 2;
      TrainSchedule candidate = train(input, middle, again);
      if (fits(candidate)) {
        best = std::move(candidate);
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return best;
  }

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

TrainSchedule single_train_within(const PlanInput& input, std::optional<bool> recompute,
                                  const std::vector<uint64_t>& budgets) {
  return single_planner().train_within(input, recompute, [&](const TrainSchedule& train) {
    const std::vector<size_t>& arenas = train.schedule.arena_bytes;
    for (size_t place = 0; place < std::min(budgets.size(), arenas.size()); ++place) {
      if (arenas[place] > budgets[place]) return false;
    }
    return true;
  });
}

}  // namespace hearth
