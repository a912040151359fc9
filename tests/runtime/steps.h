// Two training steps of a tiny model, to compare how they are run.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "modes/planner.h"
#include "plan/loader/slot_plan.h"
#include "plan/simulator.h"
#include "support/tiny_model.h"

namespace hearth::test {

inline constexpr int64_t kTokens = 24;
inline constexpr int32_t kMicroBatches = 4;

inline const OpSet& cpu() {
  register_all_op_sets();
  return find_op_set("cpu");
}

struct Outcome {
  std::vector<std::byte> weights, moments;
  double loss = 0, aux_loss = 0, norm = 0;
  std::vector<double> counts;  // of the first layer
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// All blocks live on the host, and the tasks run at devices.
struct Travelling {
  double spare = 0;  // slots above the least, as a share of what would hold everything
  uint64_t ahead_bytes = 0;
  LoadPhases phases = {};
  std::vector<Stage> stages = {{.place = 1}};  // where the blocks of which layers are computed
  /// Divides the experts of layers between their device and the host; null: all are at the device.
  SplitRule* splits = nullptr;
  SampledRows samples = SampledRows::none;  // that it gets
  bool divides = false;                     // PlanInput::divides_experts

  std::vector<Place> compute(const TinyModel& model) const {
    ParameterTable placed = model.table;
    place_blocks(placed, model.spec, Placement(stages, {}));
    std::vector<Place> places;
    for (const Block& block : placed.blocks()) places.push_back(block.place);
    return places;
  }
};

/// The slots of a model's devices.
class Caches {
 public:
  Caches(TinyModel& model, const Schedule& list, const Travelling& travelling) {
    const Schedule* lists[] = {&list};
    model.residencies.assign(static_cast<size_t>(model.places()), nullptr);
    for (Place place = 1; place < model.places(); ++place) {
      const auto sizes = slot_sizes(model.table, model.policy(), lists, place);
      if (sizes.empty()) continue;
      const uint64_t least = least_slot_bytes(sizes);
      SlotPlan plan;
      plan.blocks = travelling_blocks(model.table, lists, place);
      plan.policy = model.policy();
      plan.classes = slot_classes(
          sizes,
          least + static_cast<uint64_t>(travelling.spare *
                                        static_cast<double>(most_slot_bytes(sizes) - least)));
      plan.settings.piece_bytes = 4096;
      plan.settings.window_bytes = 3 * 4096;
      Device& device = model.device(place);
      homes_.push_back(
          std::make_unique<PinnedHomes>(device, Residency::home_memory(model.table, plan)));
      caches_.push_back(std::make_unique<Residency>(device, model.table, plan, *homes_.back()));
      model.residencies[static_cast<size_t>(place)] = caches_.back().get();
      model.loads = {travelling.ahead_bytes, wave_of(sizes, plan.classes), travelling.phases};
      loads_.push_back({place, plan.blocks, plan.classes, plan.settings, model.loads});
    }
  }
  /// The copies of blocks in each step, as a simulation has them in which every task takes a second.
  std::vector<std::vector<BlockCopy>> simulated(const TinyModel& model, const Schedule& list,
                                                int steps) const {
    LoadSimulation travel(model.table, model.policy(), list, loads_);
    const std::vector<LinkRates> links(static_cast<size_t>(model.places()), {{1e9}, {1e9}});
    const Simulator simulator(list, links, {}, &travel);
    const std::vector<TaskDemand> demands(list.tasks.size(), TaskDemand{1, 0});
    std::vector<std::vector<BlockCopy>> copies;
    for (int step = 0; step < steps; ++step) copies.push_back(simulator.run(demands).copies);
    return copies;
  }
  std::vector<ResidencyCounts> counts() const {
    std::vector<ResidencyCounts> all;
    for (const auto& cache : caches_) all.push_back(cache->counts());
    return all;
  }

 private:
  std::vector<std::unique_ptr<PinnedHomes>> homes_;
  std::vector<std::unique_ptr<Residency>> caches_;
  std::vector<DeviceLoads> loads_;
};

/// Steps from the same weights; `shape_list` may change the list before it runs.
class Steps {
 public:
  explicit Steps(const JsonObject& config = {{"mlp_only_layers", JsonArray{1}},
                                             {"num_hidden_layers", 3}})
      : config_(config) {}

  int count = 2;
  int workers = 1;
  int64_t group = 2;
  bool recompute = false;
  bool inputs_on_host = false;  // those of a device's layers wait there for backward
  bool rotates = false;         // updates run in the next step; those of the last are drained
  std::vector<std::string> adapters;
  std::function<void(RunSettings&)> settings;  // changes those of the model
  DType type = DType::f32;                     // f64: by the reference
  TinyPlaces places;
  const Planner* planner = &single_planner();
  std::vector<PlaceCosts> costs;  // by place
  LinkClock* clock = &steady_link_clock();
  std::vector<PacedTasks> paced;  // of the last step, by place
  RunOptions options;
  std::function<void()> before_step = [] {}, after_step = [] {};  // around the schedule alone
  std::function<void(Schedule&)> change_list;
  std::optional<Travelling> travelling;
  std::vector<ResidencyCounts> moved;  // in the last run, by device; only if weights travel
  Executor::LoadedExperts loaded;      // of the last step
  std::vector<std::vector<BlockCopy>> simulated;  // copies of blocks in each step

  Outcome run() {
    TinyModel model = tiny_model();
    Schedule list = schedule_of(model);
    if (change_list) change_list(list);
    model.costs = costs;
    model.clock = clock;
    std::optional<Caches> caches;
    if (travelling) {
      caches.emplace(model, list, *travelling);
      simulated = caches->simulated(model, list, count);
    }
    const auto executor = model.executor(list, workers);
    Outcome outcome;
    double due_step = 0, due_clip = 0, due_finite = 0;
    const auto give_due = [&](const Executor& to) {
      to.scalar(Value::lr) = 1e-2;
      to.scalar(Value::update_step) = due_step;
      to.scalar(Value::due_clip) = due_clip;
      to.scalar(Value::due_finite) = due_finite;
    };
    for (int step = 1; step <= count; ++step) {
      std::vector<BatchShape> shapes;
      double tokens = 0, trained = 0;
      for (int32_t m = 0; m < kMicroBatches; ++m) {
        const TinyBatch batch({3 + m, 9, 1}, model.spec.vocabulary,
                              static_cast<uint64_t>(10 * step + m));
        shapes.push_back(TinyModel::give(*executor, batch, m));
        tokens += static_cast<double>(batch.tokens());
        trained += static_cast<double>(batch.trained());
      }
      executor->scalar(Value::tokens) = tokens;
      executor->scalar(Value::trained_tokens) = trained;
      if (rotates) {
        give_due(*executor);
      } else {
        executor->scalar(Value::lr) = 1e-2;
        executor->scalar(Value::update_step) = step;
      }
      before_step();
      const bool is_whole = executor->run(shapes, options);
      after_step();
      due_step = is_whole ? step : 0;
      if (!is_whole) break;
      due_clip = executor->scalar(Value::clip);
      due_finite = executor->scalar(Value::finite);
      paced = executor->paced();
      for (int32_t m = 0; m < kMicroBatches; ++m) {
        outcome.loss += executor->scalar(Value::loss, m);
        outcome.aux_loss += executor->scalar(Value::aux_loss, m);
        const View counts = executor->value(Value::router_counts, 0, m);
        outcome.counts.insert(outcome.counts.end(), counts.as<double>(),
                              counts.as<double>() + counts.size());
      }
      outcome.norm = executor->scalar(Value::grad_norm);
    }
    if (rotates && due_step > 0) {
      const Schedule drain = planner->drain(input_of(model));
      const auto last = model.executor(drain, workers);
      give_due(*last);
      RunOptions of_updates = options;
      of_updates.abandon = {};
      of_updates.order = {};
      of_updates.poison = false;
      last->run({}, of_updates);
    }
    if (caches) moved = caches->counts();
    loaded = executor->loaded_experts();
    outcome.weights = model.bytes(CopyRole::master);
    outcome.moments = model.bytes(CopyRole::moment2);
    return outcome;
  }

  Schedule list() const {
    TinyModel model = tiny_model();
    return schedule_of(model);
  }

 private:
  TinyModel tiny_model() const {
    const OpSet& host = cpu();  // registers all
    const OpSet& ops = type == DType::f64 ? find_op_set("reference") : host;
    TinyModel model(tiny_config(config_), ops, type, 1, adapters, places);
    if (settings) settings(model.settings);
    return model;
  }
  Schedule schedule_of(TinyModel& model) const {
    if (travelling) model.compute = travelling->compute(model);
    if (travelling) model.splits = travelling->splits;
    return planner->train(input_of(model), group, recompute).schedule;
  }
  PlanInput input_of(const TinyModel& model) const {
    PlanInput input = model.input(kTokens, kTokens, kMicroBatches);
    input.rotates = rotates;
    input.inputs_on_host = inputs_on_host;
    if (travelling) input.samples = travelling->samples;
    if (travelling) input.divides_experts = travelling->divides;
    return input;
  }

  JsonObject config_;
};

/// A random order that dependencies allow.
inline std::vector<TaskId> random_order(const Schedule& list, uint64_t seed) {
  const auto before = dependencies(list);
  std::vector<int> waiting(list.tasks.size());
  std::vector<std::vector<TaskId>> after(list.tasks.size());
  std::vector<TaskId> ready, order;
  for (size_t t = 0; t < before.size(); ++t) {
    waiting[t] = static_cast<int>(before[t].size());
    for (const TaskId b : before[t])
      after[static_cast<size_t>(b)].push_back(static_cast<TaskId>(t));
    if (waiting[t] == 0) ready.push_back(static_cast<TaskId>(t));
  }
  const Random random(seed, RandomSite::shuffle);
  for (uint64_t draw = 0; !ready.empty(); ++draw) {
    std::swap(ready[random.below(draw, ready.size())], ready.back());
    const TaskId task = ready.back();
    ready.pop_back();
    order.push_back(task);
    for (const TaskId next : after[static_cast<size_t>(task)]) {
      if (--waiting[static_cast<size_t>(next)] == 0) ready.push_back(next);
    }
  }
  return order;
}

}  // namespace hearth::test
