#include "budget/decided_splits.h"

#include <algorithm>
#include <optional>

#include "budget/run_rates.h"
#include "budget/schedule_memory.h"
#include "plan/decisions/equation_1.h"
#include "plan/decisions/makespan_rule.h"
#include "plan/loader/slot_layout.h"
#include "plan/task_costs.h"

namespace hearth {

namespace {

ExpertSplit by_equation_1(const SplitProblem& problem) {
  return split_by_equation_1(problem, EquationForm::corrected);
}
ExpertSplit by_printed_equation_1(const SplitProblem& problem) {
  return split_by_equation_1(problem, EquationForm::printed);
}
SplitAnswer answer_of(const ModelPlaces& places) {
  switch (places.divide) {
    case DivideBy::makespan: return &split_by_makespan;
    case DivideBy::printed_equation_1: return &by_printed_equation_1;
    case DivideBy::home:
    case DivideBy::equation_1: return &by_equation_1;
  }
  return &by_equation_1;
}

/// Bytes of an expert's cargo, with its adapter's.
double cargo_bytes(const PlacedModel& model, const CopyPolicy& policy, int32_t layer, Cargo cargo) {
  const BlockId expert = model.table.find_block(BlockKind::expert, layer, 0);
  auto bytes = static_cast<double>(slot_layout(model.table, expert, cargo, policy).bytes);
  if (const auto adapter = model.table.adapter_of(expert)) {
    bytes += static_cast<double>(slot_layout(model.table, *adapter, cargo, policy).bytes);
  }
  return bytes;
}

/// Whether the base weights of experts change.
bool trains_experts(const ParameterTable& table, int32_t layer) {
  const Block& block = table.block(table.find_block(BlockKind::expert, layer, 0));
  for (TensorId id = block.begin; id < block.end; ++id) {
    if (table.tensor(id).trainable) return true;
  }
  return false;
}

/// None: the place has no times for experts.
std::optional<std::pair<std::shared_ptr<const CostTable>, const CostEntry*>> entry_of(
    const PlaceCosts& costs, const ModelSpec& spec, int32_t layer, Phase phase) {
  Task task;
  task.kind = TaskKind::experts;
  task.phase = phase;
  task.layer = layer;
  const CostEntry* const entry = cost_entry(costs, task, spec);
  if (entry == nullptr) return std::nullopt;
  return std::pair(costs.table, entry);
}

/// Of the tasks of a layer with experts at a place, but not of the experts.
double dense_seconds(const PlacedModel& model, const PlaceCosts& costs, int32_t layer, Phase phase,
                     int64_t tokens, int64_t longest) {
  const ModelSpec& spec = model.opened->spec;
  const BatchWork batch = full_batch(tokens, std::max<int64_t>(1, longest));
  double seconds = 0;
  for (const TaskKind kind :
       {TaskKind::attention, TaskKind::mlp, TaskKind::dispatch, TaskKind::combine}) {
    if (kind == TaskKind::mlp && !spec.has_shared_expert(layer)) continue;
    Task task;
    task.kind = kind;
    task.phase = phase;
    task.layer = layer;
    const CostEntry* const entry = cost_entry(costs, task, spec);
    if (entry) seconds += predicted_seconds(*entry, task, batch, spec, model.table);
  }
  return seconds;
}

/// Of what a layer trains, at the host.
double update_seconds(const PlacedModel& model, const PlaceCosts& host, int32_t layer) {
  Task task;
  task.kind = TaskKind::update;
  task.layer = layer;
  const CostEntry* const entry = cost_entry(host, task, model.opened->spec);
  if (entry == nullptr) return 0;
  double parameters = 0;
  for (const Tensor& tensor : model.table.tensors()) {
    if (!tensor.trainable || model.table.block(tensor.block).layer != layer) continue;
    parameters += static_cast<double>(tensor.size());
  }
  return parameters > 0 ? entry->at(parameters) : 0;
}

/// What the host's memory passes at least, by its table: the fastest of an update, which reads and
/// writes master, moments and gradient, a norm, and an expert of few tokens, which reads its weights.
double memory_rate(const PlacedModel& model, const PlaceCosts& host, int32_t layer,
                   double expert_bytes) {
  const ModelSpec& spec = model.opened->spec;
  double rate = 0;
  const auto take = [&](const CostEntry* entry, double bytes) {
    if (entry == nullptr || entry->seconds.back() <= 0) return;
    rate = std::max(rate, bytes * static_cast<double>(entry->units.back()) / entry->seconds.back());
  };
  constexpr double kUpdateBytes = 28, kNormBytes = 4;  // of a parameter in f32
  Task task;
  task.kind = TaskKind::update;
  take(cost_entry(host, task, spec), kUpdateBytes);
  task.kind = TaskKind::norm;
  take(cost_entry(host, task, spec), kNormBytes);
  task.kind = TaskKind::experts;
  task.layer = layer;
  const CostEntry* const experts = cost_entry(host, task, spec);
  if (experts != nullptr && experts->at(1) > 0)
    rate = std::max(rate, expert_bytes / experts->at(1));
  return rate;
}

/// PlanInput::rounds, of a layer whose experts are at several places.
bool sends_rounded(const PlacedModel& model, const CopyPolicy& policy, int32_t layer) {
  const Pass pass = policy.training ? Pass::train : Pass::eval;
  return rounds_tokens(model.opened->spec, model.settings, model.table, layer, pass);
}

/// What decisions about the experts of a device know. None: a place has no times.
std::optional<DecidedDevice> device_of(const PlacedModel& model, const CopyPolicy& policy,
                                       Place place, std::vector<int32_t> layers,
                                       std::span<const Phase> phases, const LinkRates& link,
                                       int64_t tokens, int64_t longest) {
  const ModelSpec& spec = model.opened->spec;
  const std::vector<PlaceCosts> costs = cost_tables(model);
  DecidedDevice device;
  device.place = place;
  device.link = link;
  const int32_t layer = layers.front();
  device.layers = std::move(layers);
  device.weight_bytes = cargo_bytes(model, policy, layer, Cargo::weights);
  device.gradient_bytes = policy.training ? cargo_bytes(model, policy, layer, Cargo::gradient) : 0;
  device.row_bytes =
      static_cast<double>(spec.hidden) * static_cast<double>(size_of(model.settings.activations));
  device.is_trained = policy.training && trains_experts(model.table, layer);
  const bool rounds = sends_rounded(model, policy, layer);
  for (const Phase phase : phases) {
    const auto host = entry_of(costs[kHostPlace], spec, layer, phase);
    const auto own = entry_of(costs[static_cast<size_t>(place)], spec, layer, phase);
    if (!host || !own) return std::nullopt;
    const PlaceCosts& at_device = costs[static_cast<size_t>(place)];
    device.passes.push_back(
        {host->first, own->first, host->second, own->second, phase == Phase::backward,
         dense_seconds(model, at_device, layer, phase, tokens, longest),
         rounds && phase == Phase::forward ? static_cast<double>(spec.hidden) * size_of(DType::bf16)
                                           : device.row_bytes});
  }
  device.full_tokens = static_cast<double>(tokens * spec.experts_per_token);
  if (policy.training) device.update_s = update_seconds(model, costs[kHostPlace], layer);
  device.memory_bytes_per_s = memory_rate(model, costs[kHostPlace], layer, device.weight_bytes);
  return device;
}

/// Experts whose weights the slots of a device can have at one time.
int64_t expert_slots(const PlacedModel& model, const CopyPolicy& policy, const DecidedDevice& of) {
  const auto at = static_cast<size_t>(of.place);
  if (at >= model.plan.slots.size()) return 0;
  const BlockId expert = model.table.find_block(BlockKind::expert, of.layers.front(), 0);
  const size_t weights = slot_layout(model.table, expert, Cargo::weights, policy).slot_bytes();
  const size_t gradient = slot_layout(model.table, expert, Cargo::gradient, policy).slot_bytes();
  for (const SlotClass& slots : model.plan.slots[at]) {
    if (slots.bytes == weights) return slots.slots / (of.is_trained && gradient == weights ? 2 : 1);
  }
  return 0;
}

std::vector<int32_t> layers_with_experts(const ModelSpec& spec, int32_t first, int32_t last) {
  std::vector<int32_t> layers;
  for (int32_t layer = std::max(0, first); layer < spec.layers && layer <= last; ++layer) {
    if (spec.has_experts(layer)) layers.push_back(layer);
  }
  return layers;
}

/// The passes of a step that a split holds for.
std::vector<Phase> phases_of(const Schedule& schedule) {
  std::vector<Phase> phases = {Phase::forward};
  if (schedule.pass != Pass::train) return phases;
  const bool again = std::ranges::any_of(schedule.tasks, [](const Task& task) {
    return task.kind == TaskKind::experts && task.phase == Phase::recompute;
  });
  if (again) phases.push_back(Phase::forward);
  phases.push_back(Phase::backward);
  return phases;
}

/// How often a step divides a layer, and for how many micro-batches at a time.
void count_groups(const Schedule& schedule, DecidedDevice& device) {
  device.groups = 0;
  for (const Task& task : schedule.tasks) {
    if (task.kind != TaskKind::decide || task.layer != device.layers.front()) continue;
    ++device.groups;
    device.group = std::max<int64_t>(device.group, task.rows.count());
  }
}

}  // namespace

std::unique_ptr<SplitDecider> split_decider(const PlacedModel& model, const Schedule& schedule,
                                            std::span<const LinkRates> links) {
  const ModelPlaces& places = model.of_model;
  if (!places.decides()) return nullptr;
  const ModelSpec& spec = model.opened->spec;
  const CopyPolicy policy = model.plan.policy;
  std::vector<DecidedDevice> devices;
  int32_t number = 0;
  for (const Stage& stage : model.placement.stages) {
    std::vector<int32_t> layers = layers_with_experts(spec, stage.first, stage.last);
    if (layers.empty()) continue;
    const std::vector<int32_t> stages(layers.size(), number++);
    const auto known = std::ranges::find(devices, stage.place, &DecidedDevice::place);
    if (known != devices.end()) {  // a further stage of the device
      known->layers.insert(known->layers.end(), layers.begin(), layers.end());
      known->stages.insert(known->stages.end(), stages.begin(), stages.end());
      continue;
    }
    const auto at = static_cast<size_t>(stage.place);
    const std::vector<Phase> phases = phases_of(schedule);
    std::optional<DecidedDevice> device =
        device_of(model, policy, stage.place, layers, phases,
                  at < links.size() ? links[at] : LinkRates{}, schedule.tokens, schedule.longest);
    if (!device) {
      device.emplace();
      device->place = stage.place;
      device->layers = std::move(layers);
    }
    device->slots = expert_slots(model, policy, *device);
    device->stages = stages;
    count_groups(schedule, *device);
    if (places.divides_experts() && schedule.pass == Pass::train) device->width = spec.expert_width;
    devices.push_back(std::move(*device));
  }
  return std::make_unique<SplitDecider>(std::move(devices), spec.experts, answer_of(places),
                                        places.foresight, spec.experts_per_token);
}

bool knows_expert_times(const PlacedModel& model, bool training) {
  const ModelSpec& spec = model.opened->spec;
  const std::vector<int32_t> layers =
      layers_with_experts(spec, 0, static_cast<int32_t>(spec.layers));
  if (layers.empty()) return false;
  std::vector<Place> computing = model.of_model.dense;
  computing.push_back(kHostPlace);
  const std::vector<ComputePlace> places = subject_of(model).places;
  return std::ranges::all_of(computing, [&](Place at) {
    const ComputePlace& of = places[static_cast<size_t>(at)];
    if (!of.costs) return false;
    const PlaceCosts costs{of.costs, workers_of(of), model.settings.compute};
    return entry_of(costs, spec, layers.front(), Phase::forward) &&
           (!training || entry_of(costs, spec, layers.front(), Phase::backward));
  });
}

std::vector<std::vector<uint8_t>> expected_splits(const PlacedModel& model,
                                                  const PlanRequest& request) {
  const ModelPlaces& places = model.of_model;
  const ModelSpec& spec = model.opened->spec;
  if (!places.decides()) return {};
  std::vector<std::vector<uint8_t>> expected(static_cast<size_t>(spec.layers));
  const std::vector<int32_t> layers =
      layers_with_experts(spec, 0, static_cast<int32_t>(spec.layers));
  if (layers.empty()) return expected;
  const Place place = places.dense.front();
  const CopyPolicy policy{request.training, model.settings.compute, DType::f32};
  const std::vector<Phase> phases =
      request.training ? std::vector{Phase::forward, Phase::backward} : std::vector{Phase::forward};
  const LinkRates link = model.opened->place(place).device->link_rates().value_or(LinkRates{});
  std::optional<DecidedDevice> device =
      device_of(model, policy, place, layers, phases, link, request.tokens, request.longest);
  if (device) {  // one stands for all, with the layers of all
    device->slots = expert_slots(model, policy, *device) * std::ssize(places.dense);
  }
  std::optional<SplitDecider> rule;
  if (device) rule.emplace(std::vector{*device}, spec.experts, answer_of(places));
  const double choices = static_cast<double>(std::max<int64_t>(1, request.tokens)) *
                         static_cast<double>(request.micro_batches) *
                         static_cast<double>(spec.experts_per_token);
  const auto tokens_of = [&](int32_t layer) {
    std::vector<double> tokens(static_cast<size_t>(spec.experts),
                               choices / static_cast<double>(spec.experts));
    if (model.popularity.empty()) return tokens;
    const std::vector<double>& counts = model.popularity[static_cast<size_t>(layer)];
    double sum = 0;
    for (const double count : counts) sum += count;
    for (size_t e = 0; e < tokens.size() && sum > 0; ++e) tokens[e] = choices * counts[e] / sum;
    return tokens;
  };
  for (const int32_t layer : layers) {
    expected[static_cast<size_t>(layer)].assign(static_cast<size_t>(spec.experts), 1);
  }
  for (int64_t step = 1; rule && step <= 2; ++step) {
    rule->begin_step(step);
    for (const int32_t layer : layers) {
      std::vector<Place> split(static_cast<size_t>(spec.experts));
      rule->divide(layer, tokens_of(layer), split);
      for (size_t e = 0; e < split.size(); ++e) {
        expected[static_cast<size_t>(layer)][e] = split[e] == place ? 1 : 0;
      }
    }
    rule->end_step();
  }
  return expected;
}

}  // namespace hearth
