#include "budget/run_rates.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <tuple>

#include "base/log.h"
#include "base/stopwatch.h"
#include "base/system.h"
#include "budget/rank_rates.h"
#include "budget/start_tables.h"
#include "runtime/cost_rates.h"
#include "runtime/link_rates.h"

namespace hearth {

namespace {

constexpr double kBestRateSeconds = .5;  // a first measurement that took longer is not repeated
constexpr double kLinkSeconds = .5;  // left for links, and for the run that is in work at the end

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

/// Of the devices that the run computes at, by place: as the device or its table states them. Only
/// without both are links measured.
std::vector<LinkRates> links_of(const PlacedModel& model, uint64_t most) {
  std::vector<LinkRates> links(model.opened->devices.places.size());
  const std::vector<Place> used = model.placement.places();
  for (Place at = kHostPlace + 1; static_cast<size_t>(at) < links.size(); ++at) {
    if (std::find(used.begin(), used.end(), at) == used.end()) continue;
    const ComputePlace& place = model.opened->place(at);
    const RunTable* const table = model.tables.find(place.budget.name);
    LinkRates& of = links[static_cast<size_t>(at)];
    if (const auto stated = place.device->link_rates()) {
      of = *stated;
    } else if (table == nullptr) {
      of = measure_links(*place.device, memory_for(place, most));
    }
    if (table == nullptr) continue;
    const auto take = [](LinkRate& rate, const CostLink* link) {
      if (link == nullptr || rate.bytes_per_s > 0) return;
      rate.bytes_per_s = link->bytes_per_s;
      if (rate.latency_s == 0) rate.latency_s = link->latency_s;
    };
    take(of.in, table->table->link_to(place.budget.name));
    take(of.out, table->table->link_from(place.budget.name));
  }
  return links;
}

}  // namespace

AssumedRates::AssumedRates() { ++assumed; }
AssumedRates::~AssumedRates() { --assumed; }

namespace {

/// The memory that measurements of rates may take on the host.
uint64_t memory_of_rates(const PlacedModel& model) {
  const uint64_t now = resident_bytes(), budget = model.opened->place(kHostPlace).budget.bytes;
  return std::min<uint64_t>(uint64_t{192} << 20, budget > now ? (budget - now) / 4 : 0);
}

/// A device in the host's memory computes as the host does; its own budget is the run's.
Device& measured_device(const PlacedModel& model, Place at) {
  const ComputePlace& place = model.opened->place(at);
  return place.host_reaches ? *model.opened->place(kHostPlace).device : *place.device;
}

RateOptions rate_options(const PlacedModel& model, Place at, uint64_t most) {
  const ComputePlace& place = model.opened->place(at);
  const StreamTeam& team = place.teams.front();
  return {*place.ops, model.settings.compute,  team.workers,
          team.cores, memory_for(place, most), trained_parameters(model.table)};
}

bool travels(const PlacedModel& model) { return model.of_model.travel != Travel::never; }

/// The best rates of the first place that computes and is not paced; none if all are. They are for
/// the bound alone.
std::optional<MachineRates> best_rates(const PlacedModel& model) {
  std::vector<Place> places = model.placement.places();
  if (travels(model)) places.push_back(kHostPlace);  // which updates
  for (const Place at : places) {
    if (model.opened->place(at).costs) continue;
    Device& device = measured_device(model, at);
    const RateOptions options = rate_options(model, at, memory_of_rates(model));
    // Repeats in a process reuse them.
    static std::map<std::tuple<std::string, Compute, int, int64_t>, MachineRates> measured;
    const std::tuple key(model.opened->place(at).budget.name, options.compute, options.workers,
                         options.parameters);
    if (const auto known = measured.find(key); known != measured.end()) return known->second;
    const Stopwatch watch;
    MachineRates best = measure_rates(device, options);
    if (watch.seconds() < kBestRateSeconds) {
      const MachineRates again = measure_rates(device, options);
      keep_best(best.flops_per_s, again.flops_per_s);
      keep_best(best.update_params_per_s, again.update_params_per_s);
    }
    return measured.emplace(key, best).first->second;
  }
  return std::nullopt;
}

/// The rates of places that compute and have no table. Rates that nobody needs stay 0.
RunRates measure_places(const PlacedModel& model, const PlanRequest& request) {
  const uint64_t most = memory_of_rates(model);
  const WeightUse linear = weight_use(model, false), experts = weight_use(model, true);
  const RunShapes shapes{model.opened->spec, linear.type,    experts.type,   linear.trained,
                         experts.trained,    request.tokens, request.longest};
  const auto rates_at = [&](Place at) {
    return measure_place(model.opened->place(at), measured_device(model, at),
                         rate_options(model, at, most), shapes);
  };
  const auto has_table = [&](Place at) { return table_at(model, at) != nullptr; };
  // Stages are measured at the first of them, experts at the first of their places.
  const Place dense = model.placement.stages.front().place;
  const Place apart_at = model.placement.experts_apart() ? model.placement.experts.front() : dense;
  RunRates rates;
  if (!has_table(dense)) rates = rates_at(dense);
  if (has_table(dense) && !has_table(apart_at)) rates = rates_at(apart_at);
  rates.costs.links = links_of(model, most);
  if (travels(model) && has_table(dense) && !has_table(kHostPlace)) {
    const RunRates homes = rates_at(kHostPlace);  // norms and updates run there
    rates.costs.norm_params_per_s = homes.costs.norm_params_per_s;
    rates.costs.update_params_per_s = homes.costs.update_params_per_s;
  }
  if (apart_at == dense || has_table(dense) || has_table(apart_at)) return rates;
  const RunRates apart = rates_at(apart_at);
  rates.costs.experts_forward = apart.costs.experts_forward;
  rates.costs.experts_backward = apart.costs.experts_backward;
  // Most parameters are the experts', so their place decides what the update takes.
  rates.costs.norm_params_per_s = apart.costs.norm_params_per_s;
  rates.costs.update_params_per_s = apart.costs.update_params_per_s;
  return rates;
}

}  // namespace

bool rates_are_assumed() { return assumed > 0 || user_assumes_rates(); }
bool user_assumed_rates() { return user_assumes_rates(); }

std::shared_ptr<const CostTable> table_at(const PlacedModel& model, Place at) {
  const ComputePlace& place = model.opened->place(at);
  if (place.costs) return place.costs;
  const RunTable* table = model.tables.find(place.budget.name);
  return table != nullptr ? table->table : nullptr;
}

namespace {

std::vector<PlaceCosts> costs_of(const PlacedModel& model, bool paced_alone) {
  std::vector<PlaceCosts> costs;
  const std::vector<ComputePlace>& places = model.opened->devices.places;
  for (size_t at = 0; at < places.size(); ++at) {
    const auto table = paced_alone ? places[at].costs : table_at(model, static_cast<Place>(at));
    costs.push_back({table, places[at].teams.front().workers, model.settings.compute});
  }
  return costs;
}

}  // namespace

std::vector<PlaceCosts> cost_tables(const PlacedModel& model) { return costs_of(model, false); }
std::vector<PlaceCosts> pacing_tables(const PlacedModel& model) { return costs_of(model, true); }

namespace {

/// The links of a described machine: without a rate, as fast as memory.
std::vector<LinkRates> described_links(const PlacedModel& model) {
  std::vector<LinkRates> links;
  for (const ComputePlace& place : model.opened->devices.places) {
    links.push_back(place.device->link_rates().value_or(LinkRates{}));
  }
  return links;
}

}  // namespace

RunRates measure_run(PlacedModel& model, const PlanRequest& request) {
  RunRates rates;
  const bool described = model.opened->described != nullptr;
  if (rates_are_assumed() || (described && model.opened->described->assumed_rates)) {
    rates = round_rates();
  } else if (!described) {
    const Stopwatch watch;
    if (!fits_nowhere(model)) {
      if (!model.tables.best) model.tables.best = best_rates(model);
      complete_tables(model, request, kStartSeconds - kLinkSeconds - watch.seconds());
    }
    rates = measure_places(model, request);
    if (model.tables.best) rates.best = *model.tables.best;
  }
  if (described) rates.costs.links = described_links(model);
  rates.costs.tables = cost_tables(model);
  rates.costs.ranks = rank_costs(model, request, rates);
  return rates;
}

}  // namespace hearth
