#include "budget/role_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "plan/kind_costs.h"

namespace hearth {

namespace {

/// By how much a rank must be faster to be said so.
constexpr double kFaster = 0.01;

/// The stage of a task of an attention rank, and whether it counts as forward.
struct StageOfTask {
  size_t stage;
  bool forward;
};
StageOfTask stage_of(const Task& task, int64_t layers) {
  const bool forward = task.phase == Phase::forward;
  // Of a device, also what belongs to no layer.
  const auto layer = static_cast<size_t>(std::clamp<int64_t>(task.layer, 0, layers));
  if (task.kind == TaskKind::copy) return {layer, forward};
  if (task.kind == TaskKind::embed) return {0, forward};
  if (task.kind == TaskKind::head) return {static_cast<size_t>(layers), true};
  if (forward) return {task.kind == TaskKind::combine ? layer + 1 : layer, true};
  const bool ends_layer = task.phase == Phase::backward &&
                          (task.kind == TaskKind::dispatch || task.kind == TaskKind::attention);
  return {ends_layer ? layer : layer + 1, false};
}

void add(ZebraTime& time, bool forward, double seconds) {
  (forward ? time.forward : time.backward) += seconds;
}

void keep_slowest(ZebraTime& kept, const ZebraTime& other) {
  kept.forward = std::max(kept.forward, other.forward);
  kept.backward = std::max(kept.backward, other.backward);
}

void keep_slowest(std::vector<ZebraTime>& kept, const std::vector<ZebraTime>& other) {
  kept.resize(other.size());
  for (size_t i = 0; i < other.size(); ++i) keep_slowest(kept[i], other[i]);
}

/// Adds up the tasks of a schedule, for a mean micro-batch, at a rank of some speed.
class RoleTimes {
 public:
  RoleTimes(const PlacedModel& model, const ZebraRoles& roles, const StepWork& work,
            const RankSpeed& speed)
      : model_(model), roles_(roles), work_(work), costs_(costs_at(model, speed)) {}

  /// By stage.
  std::vector<ZebraTime> attention() const {
    std::vector<ZebraTime> stages(layers() + 1);
    const Schedule& schedule = model_.plan.train->schedule;
    for (const Task& task : schedule.tasks) {
      const bool talks = kind_costs(task.kind).talks;
      if (task.rows.none() || task.kind == TaskKind::experts || talks) continue;
      const auto [stage, forward] = stage_of(task, model_.opened->spec.layers);
      add(stages[stage], forward, seconds_of(schedule, task, model_.table));
    }
    return stages;
  }

  /// By layer: one of the experts that the first expert rank has if none moved.
  std::vector<ZebraTime> expert() const {
    std::vector<ZebraTime> layers_of(layers());
    const Schedule& schedule = roles_.plan.train->schedule;
    for (const Task& task : schedule.tasks) {
      if (task.kind != TaskKind::experts) continue;
      const auto [first, last] =
          roles_.plan.shards.experts(task.layer).own(model_.opened->spec.experts);
      add(layers_of[static_cast<size_t>(task.layer)], task.phase == Phase::forward,
          seconds_of(schedule, task, roles_.table) / std::max(1, last - first));
    }
    return layers_of;
  }

  void add_exchanges(std::vector<ZebraLayerTimes>& of) const {
    const Schedule& schedule = model_.plan.train->schedule;
    for (const Task& task : schedule.tasks) {
      if (task.rows.none() || !kind_costs(task.kind).talks) continue;
      ZebraLayerTimes& layer = of[static_cast<size_t>(task.layer)];
      add(task.kind == TaskKind::return_rows ? layer.back : layer.out, task.phase == Phase::forward,
          seconds_of(schedule, task, model_.table));
    }
  }

 private:
  size_t layers() const { return static_cast<size_t>(model_.opened->spec.layers); }
  double seconds_of(const Schedule& schedule, const Task& task, const ParameterTable& table) const {
    const TaskCost cost = task_cost(schedule, task, work_of(task.rows, work_.batches),
                                    model_.opened->spec, table, costs_);
    return cost.total_s() / static_cast<double>(schedule.micro_batches);
  }

  const PlacedModel& model_;
  const ZebraRoles& roles_;
  const StepWork& work_;
  const CostRates costs_;
};

}  // namespace

ZebraTimes zebra_times(const PlacedModel& model, const ZebraRoles& roles, const StepWork& work) {
  const RankShards& shards = model.plan.shards;
  const ModelSpec& spec = model.opened->spec;
  ZebraTimes times;
  times.attention_ranks = shards.attention_of_group();
  times.expert_ranks = shards.experts_of_group();
  times.experts = static_cast<int32_t>(spec.experts);
  times.layers.resize(static_cast<size_t>(spec.layers));
  std::vector<ZebraTime> here, there;
  for (const RankSpeed& speed : roles.speeds) {
    const RoleTimes of(model, roles, work, speed);
    if (speed.rank < shards.attention_ranks) {
      keep_slowest(times.stages, of.attention());
      keep_slowest(here, of.expert());
      if (speed.rank == 0) of.add_exchanges(times.layers);
    } else {
      keep_slowest(there, of.expert());
    }
  }
  for (size_t layer = 0; layer < times.layers.size(); ++layer) {
    times.layers[layer].expert_here = here[layer];
    times.layers[layer].expert_there = there[layer];
  }
  return times;
}

std::string faster_expert_rank(const PlacedModel& model, const ZebraRoles& roles,
                               const StepWork& work) {
  struct Timed {
    const RankSpeed* speed = nullptr;
    double seconds = 0;
  };
  Timed slowest, fastest;  // of attention ranks, of expert ranks
  for (const RankSpeed& speed : roles.speeds) {
    const std::vector<ZebraTime> stages = RoleTimes(model, roles, work, speed).attention();
    const double seconds =
        std::accumulate(stages.begin(), stages.end(), 0.0,
                        [](double sum, const ZebraTime& each) { return sum + each.total(); });
    if (speed.rank < model.plan.shards.attention_ranks) {
      if (slowest.speed == nullptr || seconds > slowest.seconds) slowest = {&speed, seconds};
    } else if (fastest.speed == nullptr || seconds < fastest.seconds) {
      fastest = {&speed, seconds};
    }
  }
  if (fastest.speed == nullptr || fastest.seconds >= slowest.seconds * (1 - kFaster)) return {};
  return fmt::format(
      "zebra: the first {} ranks compute attention, but rank {} would be faster at it than rank {} "
      "by their cost tables: {:.3g} ms per micro-batch instead of {:.3g} ms; give the first ranks "
      "the fastest devices",
      model.plan.shards.attention_ranks, fastest.speed->rank, slowest.speed->rank,
      1e3 * fastest.seconds, 1e3 * slowest.seconds);
}

}  // namespace hearth
