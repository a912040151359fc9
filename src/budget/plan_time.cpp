#include "budget/plan_time.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <map>

#include "base/log.h"
#include "base/setting.h"
#include "base/system.h"
#include "runtime/cost_rates.h"
#include "runtime/link_rates.h"

namespace hearth {

namespace {

/// How products find the weights of a kind of block: type, and whether any of them is trained.
struct WeightUse {
  DType type = DType::f32;
  bool trained = false;
};

WeightUse weight_use(const PlacedModel& model, bool expert) {
  WeightUse use;
  use.type = DType::f32;
  bool found = false;
  for (const Block& block : model.table.blocks()) {
    if ((block.kind == BlockKind::expert) != expert || block.layer < 0) continue;
    for (TensorId id = block.begin; id < block.end; ++id) {
      const Tensor& t = model.table.tensor(id);
      if (t.vector || t.slot == Slot::router) continue;
      if (t.trainable) {
        return {model.settings.compute == Compute::bf16 ? DType::bf16 : DType::f32, true};
      }
      if (!found) use.type = t.stored;
      found = true;
    }
  }
  return use;
}

void keep_best(double& a, double b) { a = std::max(a, b); }

void keep_best(RateCurve& a, const RateCurve& b) {
  for (size_t i = 0; i < a.points.size(); ++i) {
    keep_best(a.points[i].flops_per_s, b.points[i].flops_per_s);
  }
}

/// Both were measured alike: what a neighbour on the machine took from one of them does not count.
void keep_best(RunRates& a, const RunRates& b) {
  keep_best(a.best.flops_per_s, b.best.flops_per_s);
  keep_best(a.best.update_params_per_s, b.best.update_params_per_s);
  keep_best(a.costs.linear_forward, b.costs.linear_forward);
  keep_best(a.costs.linear_backward, b.costs.linear_backward);
  keep_best(a.costs.experts_forward, b.costs.experts_forward);
  keep_best(a.costs.experts_backward, b.costs.experts_backward);
  keep_best(a.costs.attention_forward, b.costs.attention_forward);
  keep_best(a.costs.attention_backward, b.costs.attention_backward);
  keep_best(a.costs.loss, b.costs.loss);
  keep_best(a.costs.row_bytes_per_s, b.costs.row_bytes_per_s);
  keep_best(a.costs.norm_params_per_s, b.costs.norm_params_per_s);
  keep_best(a.costs.update_params_per_s, b.costs.update_params_per_s);
}

/// A bound is what nothing here passes: no rate that was measured is above the best.
void bound_by(RunRates& rates) {
  const CostRates& costs = rates.costs;
  double& best = rates.best.flops_per_s;
  for (const RateCurve* curve : {&costs.linear_forward, &costs.linear_backward,
                                 &costs.experts_forward, &costs.experts_backward}) {
    for (const RateCurve::Point& point : curve->points) keep_best(best, point.flops_per_s);
  }
  for (const double rate : {costs.attention_forward, costs.attention_backward, costs.loss}) {
    keep_best(best, rate);
  }
  keep_best(rates.best.update_params_per_s, costs.update_params_per_s);
}

/// How many AssumedRates live.
std::atomic<int> assumed{0};

/// Whether the user asks for no measurement. Only for tests of the whole program, which start it
/// many times at once.
bool user_assumes_rates() {
  static const bool asked = [] {
    const char* text = std::getenv("HEARTH_RATES");
    if (text == nullptr || *text == '\0') return false;
    if (std::string_view(text) != "assumed") {
      throw usage_error("HEARTH_RATES: " + quoted(text) +
                        ": the one value is 'assumed'; unset it to measure the machine");
    }
    log_info(
        "HEARTH_RATES=assumed: nothing is measured, so predicted times and bounds mean nothing");
    return true;
  }();
  return asked;
}

RunRates round_rates() {
  const RateCurve curve{{{1, 1e10}}};
  return {{1e10, 1e9}, {curve, curve, curve, curve, 1e10, 1e10, 1e10, 1e10, 1e9, 1e9, {}, {}}};
}

/// What the measurements are a function of, but for the memory that they may take.
std::vector<int64_t> measured_by(const RateOptions& options, const RunShapes& shapes) {
  const ModelSpec& spec = shapes.spec;
  std::vector<int64_t> key{static_cast<int64_t>(options.compute),
                           options.workers,
                           options.parameters,
                           static_cast<int64_t>(shapes.linear_weights),
                           static_cast<int64_t>(shapes.expert_weights),
                           shapes.linear_trained,
                           shapes.experts_trained,
                           shapes.tokens,
                           shapes.longest,
                           spec.hidden,
                           spec.vocabulary,
                           spec.heads,
                           spec.kv_heads,
                           spec.head_dim,
                           spec.expert_width,
                           spec.experts,
                           spec.experts_per_token,
                           spec.moe_layers()};
  const std::string_view ops = options.ops.name();
  key.insert(key.end(), ops.begin(), ops.end());
  return key;
}

}  // namespace

namespace {

/// What a measurement of a place may take, of `most`.
uint64_t memory_for(const ComputePlace& place, uint64_t most) {
  constexpr uint64_t kMostOfDevice = uint64_t{8} << 30;  // problems of the run's own size
  if (place.device->has_own_clock()) return std::min(kMostOfDevice, place.budget.bytes / 4);
  return place.host_reaches ? most : std::min(most, place.budget.bytes / 4);
}

/// What one place reaches, measured twice: what a neighbour takes from one of them does not count.
RunRates measure_place(const ComputePlace& place, Device& device, const RateOptions& options,
                       const RunShapes& shapes) {
  // What was measured for another run of these shapes in this process is not measured again.
  static std::map<std::pair<std::string, std::vector<int64_t>>, RunRates> measured;
  std::pair key{place.budget.name, measured_by(options, shapes)};
  if (const auto known = measured.find(key); known != measured.end()) return known->second;
  const auto measure = [&] {
    const MachineRates best = measure_rates(device, options);
    return RunRates{best, measure_costs(device, options, shapes, best)};
  };
  RunRates rates = measure();
  keep_best(rates, measure());
  bound_by(rates);
  return measured.emplace(std::move(key), rates).first->second;
}

/// Of the devices that the run computes at, by place.
std::vector<LinkRates> links_of(const PlacedModel& model, uint64_t most) {
  std::vector<LinkRates> links(model.opened->devices.places.size());
  const std::vector<Place> used = model.placement.places();
  for (Place at = kHostPlace + 1; static_cast<size_t>(at) < links.size(); ++at) {
    if (std::find(used.begin(), used.end(), at) == used.end()) continue;
    const ComputePlace& place = model.opened->place(at);
    links[static_cast<size_t>(at)] = measure_links(*place.device, memory_for(place, most));
  }
  return links;
}

}  // namespace

AssumedRates::AssumedRates() { ++assumed; }
AssumedRates::~AssumedRates() { --assumed; }

namespace {

/// The rates of places that compute and have no table. Rates that nobody needs stay 0.
RunRates measure_places(const PlacedModel& model, const PlanRequest& request) {
  const uint64_t now = resident_bytes(), budget = model.opened->place(kHostPlace).budget.bytes;
  const uint64_t most =
      std::min<uint64_t>(uint64_t{192} << 20, budget > now ? (budget - now) / 4 : 0);
  const WeightUse linear = weight_use(model, false), experts = weight_use(model, true);
  const RunShapes shapes{model.opened->spec, linear.type,    experts.type,   linear.trained,
                         experts.trained,    request.tokens, request.longest};
  const auto rates_at = [&](Place at) {
    const ComputePlace& place = model.opened->place(at);
    const StreamTeam& team = place.teams.front();
    // A device in the host's memory computes as the host does; its own budget is the run's.
    Device& device = place.host_reaches ? *model.opened->place(kHostPlace).device : *place.device;
    const RateOptions options{*place.ops, model.settings.compute,  team.workers,
                              team.cores, memory_for(place, most), trained_parameters(model.table)};
    return measure_place(place, device, options, shapes);
  };
  const auto has_table = [&](Place at) { return model.opened->place(at).costs != nullptr; };
  // Stages are measured at the first of them, experts at the first of their places.
  const Place dense = model.placement.stages.front().place;
  const Place apart_at = model.placement.experts_apart() ? model.placement.experts.front() : dense;
  RunRates rates;
  if (!has_table(dense)) rates = rates_at(dense);
  if (has_table(dense) && !has_table(apart_at)) rates = rates_at(apart_at);
  rates.costs.links = links_of(model, most);
  if (apart_at == dense || has_table(dense) || has_table(apart_at)) return rates;
  const RunRates apart = rates_at(apart_at);
  rates.costs.experts_forward = apart.costs.experts_forward;
  rates.costs.experts_backward = apart.costs.experts_backward;
  // Most parameters are the experts', so their place decides what the update takes.
  rates.costs.norm_params_per_s = apart.costs.norm_params_per_s;
  rates.costs.update_params_per_s = apart.costs.update_params_per_s;
  return rates;
}

/// The links of a described machine: without a rate, as fast as memory.
std::vector<LinkRates> described_links(const PlacedModel& model) {
  std::vector<LinkRates> links;
  for (const ComputePlace& place : model.opened->devices.places) {
    links.push_back(place.device->link_rates().value_or(LinkRates{}));
  }
  return links;
}

/// The names of places that compute and have no table.
std::string places_without_table(const PlacedModel& model) {
  std::string names;
  for (const Place at : model.placement.places()) {
    const ComputePlace& place = model.opened->place(at);
    if (!place.costs) names += (names.empty() ? "" : ", ") + place.budget.name;
  }
  return names;
}

std::string source_of_times(const PlacedModel& model) {
  bool measured = false, tables = false;
  for (const Place at : model.placement.places()) {
    (model.opened->place(at).costs ? tables : measured) = true;
  }
  const std::string rates = user_assumes_rates() ? "assumed rates" : "a quick measurement";
  if (!tables) return rates;
  return measured ? "cost tables and " + rates : "cost tables";
}

}  // namespace

std::vector<PlaceCosts> cost_tables(const PlacedModel& model) {
  std::vector<PlaceCosts> costs;
  for (const ComputePlace& place : model.opened->devices.places) {
    costs.push_back({place.costs, place.teams.front().workers, model.settings.compute});
  }
  return costs;
}

std::vector<std::string> paced_lines(const PlacedModel& model) {
  std::vector<std::string> lines;
  const std::vector<PlaceCosts> costs = cost_tables(model);
  for (size_t at = 0; at < costs.size(); ++at) {
    if (!costs[at].table) continue;
    const auto place = static_cast<Place>(at);
    const bool paced = model.opened->place(place).paced;
    const std::string untimed =
        untimed_tasks(costs[at], place, model.plan.train->schedule, model.opened->spec);
    std::string line = model.opened->place(place).budget.name +
                       (paced ? ": paced by its cost table" : ": times of its cost table");
    if (!untimed.empty()) {
      line += "; it has no times for " + untimed + ": " +
              (paced ? "they take their real time, and the plan counts them as 0"
                     : "the plan counts them as 0");
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

bool knows_described_times(const PlacedModel& model) {
  if (!model.opened->described || assumed > 0 || user_assumes_rates()) return true;
  return places_without_table(model).empty();
}

RunRates measure_run(const PlacedModel& model, const PlanRequest& request) {
  const bool described = model.opened->described != nullptr;
  RunRates rates = assumed > 0 || user_assumes_rates() ? round_rates()
                   : described                         ? RunRates{}
                                                       : measure_places(model, request);
  if (described) rates.costs.links = described_links(model);
  rates.costs.tables = cost_tables(model);
  return rates;
}

StepBound bound_of(const PlacedModel& model, std::span<const BatchWork> batches) {
  const Schedule& schedule = model.plan.train->schedule;
  const std::vector<PlaceCosts>& tables = model.rates->costs.tables;
  const bool paced =
      std::any_of(tables.begin(), tables.end(), [](const PlaceCosts& c) { return c.table; });
  if (paced || model.placement.places().size() > 1) {  // places compute at the same time
    return step_bound_by_tables(schedule, batches, model.opened->spec, model.table,
                                model.rates->best, tables);
  }
  return step_bound(schedule, batches, model.rates->best, trained_parameters(model.table));
}

StepWork full_step(const PlanRequest& request) {
  return {std::vector<BatchWork>(static_cast<size_t>(request.micro_batches),
                                 full_batch(request.tokens, request.longest)),
          "full micro-batches", std::nullopt};
}

StepWork mean_step(const RunRows& rows, const SamplerOptions& options, const Sampler& sampler) {
  const RowSet& set = rows.training();
  DataShape data;
  data.rows = rows.summary();
  data.eval_rows = rows.validation().rows();
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

PlanTimes predict(const PlacedModel& model, const StepWork& work, std::optional<int64_t> steps) {
  const std::optional<RunRates>& rates = model.rates;
  const Schedule& schedule = model.plan.train->schedule;
  PlanTimes times;
  for (const BatchWork& batch : work.batches) times.tokens += batch.tokens;
  times.basis = work.basis;
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
  times.bound = bound_of(model, work.batches);
  times.step =
      Simulator(schedule, rates->costs.links)
          .run(task_demands(schedule, work.batches, model.opened->spec, model.table, rates->costs));
  times.use = use_of(schedule, times.step.trace, model.opened->devices.names());
  return times;
}

}  // namespace hearth
