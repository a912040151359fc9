#include "budget/plan_time.h"

#include <algorithm>
#include <bit>
#include <map>

#include "base/setting.h"
#include "budget/device_loads.h"
#include "budget/routed_steps.h"
#include "budget/table_warnings.h"
#include "plan/rank_simulation.h"
#include "plan/table_rates.h"

namespace hearth {

namespace {

std::string source_of_times(const PlacedModel& model) {
  bool measured = false, tables = false;
  for (const Place at : model.placement.places()) {
    const ComputePlace& place = model.opened->place(at);
    const RunTable* const table = model.tables.find(place.budget.name);
    const bool quick = table != nullptr && table->source == TableSource::measured && !table->saved;
    (place.costs || (table != nullptr && !quick) ? tables : measured) = true;
  }
  const DescribedMachine* const machine = model.opened->described.get();
  const bool assumed = user_assumed_rates() || (machine != nullptr && machine->assumed_rates);
  const std::string rates = assumed ? "assumed rates" : "a quick measurement";
  if (!tables) return rates;
  return measured ? "cost tables and " + rates : "cost tables";
}

/// Where the table of a place without costs= is from, for people.
std::string origin_text(const RunTable& table) {
  const std::string age = age_of(table.origin, seconds_now());
  const std::string old = age.empty() ? "" : ", " + age + " old";
  if (table.saved) return "times from the cost table of the saved state";
  if (table.source == TableSource::profile) return "times from the given cost table" + old;
  if (table.source == TableSource::cache) return "times from the cost table in the cache" + old;
  return "times measured at this start";
}

/// The names of places that compute and have no table.
std::string places_without_table(const PlacedModel& model) {
  std::string names;
  for (const Place at : model.placement.places()) {
    if (table_at(model, at) != nullptr) continue;
    names += (names.empty() ? "" : ", ") + model.opened->place(at).budget.name;
  }
  return names;
}

/// The entries that fit a run have its shapes. Names a kind whose entry has others; empty: none.
std::string other_shapes(const PlaceCosts& costs, Place place, const Schedule& schedule,
                         const ModelSpec& spec) {
  for (const Task& task : schedule.tasks) {
    if (task.place != place) continue;
    const CostEntry* entry = cost_entry(costs, task, spec);
    if (entry == nullptr || !entry->shape || *entry->shape == cost_shape(task, spec)) continue;
    return std::string(name_of(task.kind));
  }
  return {};
}

}  // namespace

std::vector<std::string> table_lines(const PlacedModel& model) {
  std::vector<std::string> lines;
  const Schedule& schedule = model.plan.train->schedule;
  const std::vector<PlaceCosts> costs = cost_tables(model);
  for (size_t at = 0; at < costs.size(); ++at) {
    if (!costs[at].table) continue;
    const auto place = static_cast<Place>(at);
    const ComputePlace& of = model.opened->place(place);
    const bool paced = of.costs != nullptr && of.paced;
    const std::string& name = of.budget.name;
    std::string line = name + ": " +
                       (paced                 ? "paced by its cost table"
                        : of.costs != nullptr ? "times of its cost table"
                                              : origin_text(*model.tables.find(name)));
    const std::string untimed = untimed_tasks(costs[at], place, schedule, model.opened->spec);
    if (!untimed.empty()) {
      line += "; it has no times for " + untimed + ": " +
              (paced ? "they take their real time, and the plan counts them as 0"
                     : "the plan counts them as 0");
    }
    const std::string other = other_shapes(costs[at], place, schedule, model.opened->spec);
    if (!other.empty()) {
      line += "; its times of " + other + " are of another shape: the nearest one counts";
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

Json tables_json(const PlacedModel& model) {
  Json json = JsonObject{};
  for (size_t at = 0; at < model.opened->devices.places.size(); ++at) {
    const ComputePlace& place = model.opened->devices.places[at];
    if (place.costs) {
      json[place.budget.name] = JsonObject{{"digest", place.costs->digest().hex()},
                                           {"source", place.paced ? "paced" : "machine"}};
    } else if (const RunTable* table = model.tables.find(place.budget.name)) {
      json[place.budget.name] = JsonObject{{"digest", table->table->digest().hex()},
                                           {"source", name_of(table->source)},
                                           {"made", table->origin.made}};
    }
  }
  return json;
}

MachineRates shown_rates(const PlacedModel& model) {
  MachineRates best;
  const std::vector<PlaceCosts> costs = cost_tables(model);
  for (const Place at : model.placement.places()) {
    if (model.opened->place(at).costs || !costs[static_cast<size_t>(at)].table) continue;
    const MachineRates shown = rates_of_table(costs[static_cast<size_t>(at)], at,
                                              model.plan.train->schedule, model.opened->spec);
    best.flops_per_s = std::max(best.flops_per_s, shown.flops_per_s);
    best.update_params_per_s = std::max(best.update_params_per_s, shown.update_params_per_s);
  }
  return best;
}

/// Trained parameters that this rank updates.
static int64_t own_parameters(const ParameterTable& table) {
  int64_t parameters = 0;
  for (const Tensor& t : table.tensors()) {
    if (t.trainable && table.block(t.block).owned) parameters += t.size();
  }
  return parameters;
}

StepBound bound_of(const PlacedModel& model, std::span<const BatchWork> batches) {
  const Schedule& schedule = model.plan.train->schedule;
  const std::vector<PlaceCosts> tables = pacing_tables(model);
  const bool paced =
      std::any_of(tables.begin(), tables.end(), [](const PlaceCosts& c) { return c.table; });
  StepBound bound;
  if (paced || model.placement.places().size() > 1) {  // places compute at the same time
    bound = step_bound_by_tables(schedule, batches, model.opened->spec, model.table,
                                 model.rates->best, tables);
  } else {
    bound = step_bound(schedule, batches, model.rates->best, own_parameters(model.table));
  }
  bound.loads_s = least_load_seconds(model, model.rates->costs.links);
  return bound;
}

/// Of zebra: of each role a rank of each speed, which wait for each other.
static SimulatedStep step_of_roles(const PlacedModel& model, const StepWork& work) {
  const ZebraRoles& roles = *model.zebra;
  std::vector<RankSchedule> ranks;
  for (const RankSpeed& speed : roles.speeds) {
    const bool attends = speed.rank < model.plan.shards.attention_ranks;
    const Schedule& schedule = attends ? model.plan.train->schedule : roles.plan.train->schedule;
    const ParameterTable& table = attends ? model.table : roles.table;
    ranks.push_back({&schedule, task_demands(schedule, work.batches, model.opened->spec, table,
                                             costs_at(model, speed))});
  }
  return simulate_ranks(ranks).front();
}

/// The most ranks whose steps are simulated message by message, since that takes as long as ranks squared.
constexpr int32_t kMostRanksByMessage = 8;

/// A step that begins with the slots as the step before has left them.
static SimulatedStep simulated_step(const PlacedModel& model, const StepWork& work) {
  if (model.zebra) return step_of_roles(model, work);
  const Schedule& schedule = model.plan.train->schedule;
  const CostRates& costs = model.rates->costs;
  const std::vector<TaskDemand> demands =
      task_demands(schedule, work.batches, model.opened->spec, model.table, costs);
  const std::vector<DeviceLoads> loads = device_loads(model, costs.links);
  const RankCosts& ranks = costs.ranks;
  if (loads.empty() && ranks.shards.ranks > 1 && ranks.shards.ranks <= kMostRanksByMessage) {
    return simulate_messages(
        schedule, costs.links, demands,
        collectives_of(schedule, work.batches, model.opened->spec, model.table, ranks),
        ranks.links);
  }
  if (loads.empty()) return Simulator(schedule, costs.links).run(demands);
  LoadSimulation travel(model.table, model.plan.policy, schedule, loads);
  const Simulator simulator(schedule, costs.links, {}, &travel);
  simulator.run(demands);
  return simulator.run(demands);
}

/// The last of some steps with the expected routing, and the mean time of all but the first.
static SimulatedStep routed_step(const PlacedModel& model, const StepWork& work) {
  std::vector<SimulatedStep> steps =
      simulate_steps(model, work, work.routing->steps, work.routing->choices);
  double sum = 0;
  for (size_t s = 1; s < steps.size(); ++s) sum += steps[s].time_s;
  if (steps.size() > 1) steps.back().time_s = sum / static_cast<double>(steps.size() - 1);
  return std::move(steps.back());
}

static SimulatedStep steady_step(const PlacedModel& model, const StepWork& work, bool routed) {
  SimulatedStep step = routed ? routed_step(model, work) : simulated_step(model, work);
  step.time_s += model.rates->costs.ranks.around_tasks_s();
  return step;
}

StepWork full_step(const PlanRequest& request) {
  return {std::vector<BatchWork>(
              static_cast<size_t>(request.micro_batches * request.shards.computing()),
              full_batch(request.tokens, request.longest)),
          "full micro-batches", std::nullopt};
}

StepWork mean_step(const RunRows& rows, const SamplerOptions& options, const Sampler& sampler) {
  const RowSet& set = rows.training();
  DataShape data;
  data.rows = rows.summary();
  data.eval_rows = rows.validation().rows();
  for (const auto& [path, digest] : rows.digests()) data.digests.push_back(digest.hex());
  data.sequences = sampler.sequences_in_epoch(0);
  // Lengths in buckets of a sixteenth of their size: sum and count.
  std::map<uint64_t, std::pair<double, double>> buckets;
  for (const uint32_t row : set.epoch_rows(options.seed, 0)) {
    const auto n = static_cast<uint64_t>(set.length(row));
    data.tokens += set.length(row);
    data.trained_tokens += set.trained(row);
    const int drop = std::max(0, static_cast<int>(std::bit_width(n)) - 5);
    auto& [sum, count] = buckets[n >> drop << drop];
    sum += static_cast<double>(n);
    count += 1;
  }
  data.fill = static_cast<double>(data.tokens) / static_cast<double>(data.sequences) /
              static_cast<double>(options.seq_len);
  data.steps = static_cast<double>(data.sequences) /
               static_cast<double>(options.micro_batch * options.grad_accum);
  const double share =
      static_cast<double>(options.micro_batch) / static_cast<double>(data.sequences);
  BatchWork batch;
  batch.tokens = share * static_cast<double>(data.tokens);
  batch.trained = share * static_cast<double>(data.trained_tokens);
  for (const auto& [key, bucket] : buckets) {
    batch.documents.push_back({bucket.first / bucket.second, share * bucket.second});
  }
  return {std::vector<BatchWork>(static_cast<size_t>(options.grad_accum), batch),
          "mean of the data", data};
}

bool knows_described_times(const PlacedModel& model) {
  const DescribedMachine* const machine = model.opened->described.get();
  if (machine == nullptr || machine->assumed_rates || rates_are_assumed()) return true;
  return places_without_table(model).empty();
}

PlanTimes predict(const PlacedModel& model, const StepWork& work, std::optional<int64_t> steps) {
  const std::optional<RunRates>& rates = model.rates;
  const Schedule& schedule = model.plan.train->schedule;
  PlanTimes times;
  for (const BatchWork& batch : work.batches) times.tokens += batch.tokens;
  times.basis = work.basis;
  if (model.opened->spec.experts > 0) times.popularity = kEqualPopularity;
  times.steps = steps;
  times.data = work.data;
  times.source = source_of_times(model);
  times.known = false;
  if (!knows_described_times(model)) {
    times.unknown = spelled(Setting::machine) + " has no cost table of " +
                    places_without_table(model) + "; add what 'hearth profile' prints there";
    return times;
  }
  if (!rates) {
    times.unknown = "too little memory to measure";
    return times;
  }
  times.work = step_cost(schedule, work.batches, model.opened->spec, model.table, rates->costs);
  times.known = times.work.total_s() > 0;
  if (!times.known) {
    times.unknown = "the cost tables have none of its tasks";
    return times;
  }
  times.warnings = table_warnings(model, work.batches);
  times.bound = bound_of(model, work.batches);
  const bool routed = work.routing != nullptr && knows_routed_times(model);
  if (routed) times.popularity = work.routing->basis;
  times.step = steady_step(model, work, routed);
  times.use = use_of(schedule, times.step.trace, model.opened->devices.names(), times.step.copies);
  return times;
}

}  // namespace hearth
