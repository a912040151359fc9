#include "modes/single.h"

#include <algorithm>

namespace hearth {

namespace {

/// A layer has a dense MLP, or experts and perhaps a shared one beside them.
bool has_mlp(const ModelSpec& spec, int32_t layer) {
  return !spec.has_experts(layer) || spec.has_shared_expert(layer);
}

/// The forward tasks of a layer for one micro-batch. A recompute makes again what backward reads;
/// the layer's output is not among it.
void add_layer(ScheduleBuilder& list, const ModelSpec& spec, Phase phase, int32_t layer,
               int32_t micro_batch) {
  list.add(TaskKind::attention, phase, layer, micro_batch);
  if (has_mlp(spec, layer)) list.add(TaskKind::mlp, phase, layer, micro_batch);
  if (spec.has_experts(layer)) {
    list.add(TaskKind::dispatch, phase, layer, micro_batch);
    list.add(TaskKind::experts, phase, layer, micro_batch);
  }
  if (phase == Phase::forward) list.add(TaskKind::combine, phase, layer, micro_batch);
}

void add_layer_backward(ScheduleBuilder& list, const ModelSpec& spec, int32_t layer,
                        int32_t micro_batch) {
  if (has_mlp(spec, layer)) list.add(TaskKind::mlp, Phase::backward, layer, micro_batch);
  if (spec.has_experts(layer)) {
    list.add(TaskKind::combine, Phase::backward, layer, micro_batch);
    list.add(TaskKind::experts, Phase::backward, layer, micro_batch);
    list.add(TaskKind::dispatch, Phase::backward, layer, micro_batch);
  }
  list.add(TaskKind::attention, Phase::backward, layer, micro_batch);
}

Schedule forward_schedule(const PlanInput& input, Pass pass, int64_t cache_rows) {
  ScheduleBuilder list(input, pass, cache_rows);
  const auto layers = static_cast<int32_t>(input.spec.layers);
  list.add(TaskKind::embed, Phase::forward, 0, 0);
  for (int32_t layer = 0; layer < layers; ++layer) {
    add_layer(list, input.spec, Phase::forward, layer, 0);
  }
  list.add(TaskKind::head, Phase::forward, layers, 0);
  return list.finish();
}

}  // namespace

Schedule single_train_schedule(const PlanInput& input, int64_t group, bool recompute) {
  ScheduleBuilder list(input, Pass::train);
  const auto layers = static_cast<int32_t>(input.spec.layers);
  const auto count = static_cast<int32_t>(input.micro_batches);
  for (int32_t begin = 0; begin < count; begin += static_cast<int32_t>(group)) {
    const int32_t end = std::min(count, begin + static_cast<int32_t>(group));
    for (int32_t m = begin; m < end; ++m) list.add(TaskKind::embed, Phase::forward, 0, m);
    for (int32_t layer = 0; layer < layers; ++layer) {
      for (int32_t m = begin; m < end; ++m) {
        add_layer(list, input.spec, Phase::forward, layer, m);
      }
    }
    for (int32_t m = begin; m < end; ++m) list.add(TaskKind::head, Phase::forward, layers, m);
    for (int32_t layer = layers - 1; layer >= 0; --layer) {
      for (int32_t m = begin; m < end; ++m) {
        if (recompute) add_layer(list, input.spec, Phase::recompute, layer, m);
        add_layer_backward(list, input.spec, layer, m);
      }
    }
    for (int32_t m = begin; m < end; ++m) list.add(TaskKind::embed, Phase::backward, 0, m);
  }
  list.add(TaskKind::norm, Phase::forward, -1, -1);
  for (int32_t layer = -1; layer <= layers; ++layer) {
    list.add(TaskKind::update, Phase::forward, layer, -1);
  }
  return list.finish();
}

SingleTrainPlan plan_single_train(const PlanInput& input, std::optional<bool> recompute,
                                  uint64_t budget) {
  const auto plan = [&](int64_t group, bool blocks) {
    return SingleTrainPlan{single_train_schedule(input, group, blocks), group, blocks};
  };
  const bool again = recompute.value_or(false);
  SingleTrainPlan whole = plan(input.micro_batches, again);
  if (whole.schedule.arena_bytes <= budget) return whole;
  SingleTrainPlan best = plan(1, again);
  if (best.schedule.arena_bytes > budget) {
    return recompute.has_value() ? std::move(best) : plan(1, true);
  }
  // Memory grows with the group: bisect for the largest that fits.
  int64_t low = 1, high = input.micro_batches - 1;
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    SingleTrainPlan candidate = plan(middle, again);
    if (candidate.schedule.arena_bytes <= budget) {
      best = std::move(candidate);
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return best;
}

Schedule single_eval_schedule(const PlanInput& input) {
  return forward_schedule(input, Pass::eval, 0);
}

Schedule single_decode_schedule(const PlanInput& input, int64_t cache_rows) {
  return forward_schedule(input, Pass::decode, cache_rows);
}

}  // namespace hearth
