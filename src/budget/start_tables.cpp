#include "budget/start_tables.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/stopwatch.h"
#include "base/system.h"
#include "plan/task_costs.h"
#include "runtime/filled_memory.h"
#include "runtime/link_profile.h"
#include "runtime/place_profile.h"
#include "setup/trained_model.h"

namespace hearth {

namespace {

constexpr uint64_t kFewBytes = uint64_t{192} << 20, kMostBytes = uint64_t{1} << 30;
constexpr uint64_t kMostDeviceBytes = uint64_t{4} << 30;
constexpr uint64_t kLeastBytes = uint64_t{64} << 20;  // what tables are not worth their time below
constexpr double kFillShare = .25;      // of the time, for filling the memory that is measured with
constexpr int64_t kTellingTokens = 64;  // times of fewer say little of many
constexpr uint64_t kAnyBudget = uint64_t{1} << 50;  // of a place without a limit

bool has_type(const CostTable& table, Compute dtype) {
  return std::any_of(table.entries().begin(), table.entries().end(),
                     [&](const CostEntry& e) { return e.dtype == dtype; });
}

/// Whether a cached table was measured with the shapes and cores of a run, and with enough tokens to
/// say something about its tasks.
class CachedFit {
 public:
  CachedFit(const PlaceCosts& costs, const ModelSpec& spec, int64_t tokens)
      : costs_(costs), spec_(spec), tokens_(std::min(tokens, kTellingTokens)) {}

  bool fits() const {
    const auto layers = static_cast<int32_t>(spec_.layers);
    if (!has(TaskKind::embed, -1) || !has(TaskKind::head, layers)) return false;
    for (int32_t layer = 0; layer < layers; ++layer) {
      const bool moe = spec_.has_experts(layer);
      if (!has(TaskKind::attention, layer)) return false;
      if (moe && !has(TaskKind::experts, layer)) return false;
      if ((!moe || spec_.has_shared_expert(layer)) && !has(TaskKind::mlp, layer)) return false;
    }
    return true;
  }

 private:
  bool has(TaskKind kind, int32_t layer) const {
    return has(kind, Phase::forward, layer) &&
           (kind == TaskKind::head || has(kind, Phase::backward, layer));
  }
  bool has(TaskKind kind, Phase phase, int32_t layer) const {
    Task task;
    task.kind = kind;
    task.phase = phase;
    task.layer = layer;
    const CostEntry* entry = cost_entry(costs_, task, spec_);
    if (entry == nullptr) return false;
    const bool enough = kind == TaskKind::experts || entry->units.back() >= tokens_;
    return enough && (!entry->shape || *entry->shape == cost_shape(task, spec_)) &&
           (!entry->cores || *entry->cores == costs_.cores);
  }

  const PlaceCosts& costs_;
  const ModelSpec& spec_;
  int64_t tokens_;  // the least that a curve ends at
};

/// A rate of copies in the host's memory: of a virtual device's link without a limit.
double memory_rate() {
  constexpr size_t kBytes = size_t{4} << 20;
  std::vector<std::byte> from(kBytes, std::byte{1}), to(kBytes, std::byte{2});
  double best = 1;
  for (int i = 0; i < 5; ++i) {
    const Stopwatch watch;
    std::memcpy(to.data(), from.data(), kBytes);
    best = std::min(best, std::max(watch.seconds(), 1e-9));
  }
  return static_cast<double>(kBytes) / best;
}

uint64_t parameter_bytes(const PlacedModel& model) {
  uint64_t bytes = 0;
  for (const ParameterArena& arena :
       parameter_arenas(model.table, {true, model.settings.compute, DType::f32})) {
    bytes += arena.bytes;
  }
  return bytes;
}

class StartTables {
 public:
  StartTables(PlacedModel& model, const PlanRequest& request, double seconds)
      : model_(model), request_(request), seconds_(seconds) {}

  void complete() {
    std::map<std::string, std::vector<Place>> alike;
    for (const Place at : model_.placement.places()) {
      const ComputePlace& place = model_.opened->place(at);
      if (place.costs) continue;
      const RunTable* known = model_.tables.find(place.budget.name);
      if (known != nullptr && has_type(*known->table, model_.settings.compute)) continue;
      model_.tables.by_place.erase(place.budget.name);
      if (!take_cached(at)) alike[class_of(at)].push_back(at);
    }
    if (!alike.empty()) choose_memory(alike.size());
    size_t left = alike.size();
    for (const auto& [name, places] : alike) {
      const double seconds = (seconds_ - watch_.seconds()) / static_cast<double>(left--);
      try {
        const PlaceProfile& profile = profile_of(places.front(), name, seconds);
        if (!profile.entries.empty()) add(places, profile);
      } catch (const Error& error) {
        if (error.code() != ExitCode::usage) throw;  // too little memory
      }
    }
  }

 private:
  const ComputePlace& place(Place at) const { return model_.opened->place(at); }

  /// Of the host, for each of so many measurements.
  void choose_memory(size_t measurements) {
    const uint64_t now = resident_bytes(), budget = place(kHostPlace).budget.bytes;
    const uint64_t filled = filled_in(kFillShare * seconds_ / static_cast<double>(measurements));
    const uint64_t usual = std::clamp(parameter_bytes(model_) / 2, kFewBytes, kMostBytes);
    // Half is for parameters, half for values and scratch.
    const CopyPolicy policy{true, model_.settings.compute, DType::f32};
    const uint64_t least =
        2 * least_bench_bytes(model_.opened->spec, model_.table, policy, DenseLayer::as_in_model);
    host_bytes_ = std::min({std::max(usual, least), std::max(filled, kLeastBytes),
                            budget > now ? (budget - now) / 2 : 0});
  }

  /// Whether the cache has a table that fits.
  bool take_cached(Place at) {
    if (trained_parameters(model_.table) != all_parameters(model_.table)) return false;
    const std::string& name = place(at).budget.name;
    std::optional<CostTableFile> file;
    try {
      file = find_table(cost_cache_directory(model_.opened->topology), name);
    } catch (const Error&) {  // a damaged cache is as good as none
    }
    if (!file) return false;
    const int workers = place(at).teams.front().workers;
    RunTable table{std::make_shared<const CostTable>(std::move(file->table)),
                   origin_of(file->origin, model_.settings.compute, workers), TableSource::cache,
                   false};
    const PlaceCosts costs{table.table, workers, model_.settings.compute};
    if (!CachedFit(costs, model_.opened->spec, request_.tokens).fits()) return false;
    model_.tables.by_place.insert_or_assign(name, std::move(table));
    return true;
  }

  /// Places of a class compute alike: those that work on the host's cores with as many workers.
  std::string class_of(Place at) const {
    const ComputePlace& of = place(at);
    if (!of.host_reaches) return of.budget.name;
    return std::string(of.ops->name()) + " " + std::to_string(of.teams.front().workers);
  }

  /// What a measurement is a function of.
  std::string key_of(const std::string& name) const {
    Hasher hasher;
    hasher.update_field(name);
    hasher.update_u64(request_.shards.group().divided() ? 1 : 0);
    const ModelSpec& spec = model_.opened->spec;
    for (const int64_t n :
         {static_cast<int64_t>(model_.settings.compute), request_.tokens, request_.longest,
          spec.experts_per_token, spec.heads, spec.kv_heads, spec.head_dim}) {
      hasher.update_u64(static_cast<uint64_t>(n));
    }
    for (const int64_t window : spec.windows) hasher.update_u64(static_cast<uint64_t>(window));
    for (const Tensor& t : model_.table.tensors()) {
      hasher.update_field(t.name);
      hasher.update_u64(static_cast<uint64_t>(t.rows));
      hasher.update_u64(static_cast<uint64_t>(t.cols));
      hasher.update_u64(static_cast<uint64_t>(t.stored) * 2 + (t.trainable ? 1 : 0));
    }
    return hasher.digest().hex();
  }

  /// What was measured for another run of these shapes in this process is not measured again.
  const PlaceProfile& profile_of(Place at, const std::string& name, double seconds) {
    static std::map<std::string, PlaceProfile> measured;
    const std::string key = key_of(name);
    if (const auto known = measured.find(key); known != measured.end()) return known->second;
    return measured.emplace(key, measure(at, seconds)).first->second;
  }

  PlaceProfile measure(Place at, double seconds) {
    const ComputePlace& of = place(at);
    const StreamTeam& team = of.teams.front();
    // A device in the host's memory computes as the host does; its own budget is the run's.
    const bool borrowed = of.host_reaches && of.memory == SpaceKind::device;
    const ComputePlace& where = borrowed ? place(kHostPlace) : of;
    BenchPlace bench{*where.device, *of.ops, where.memory, at, team.workers, team.cores};
    uint64_t bytes =
        of.host_reaches ? host_bytes_ : std::min(of.budget.bytes / 2, kMostDeviceBytes);
    if (of.host_reaches) {
      bench.between_bytes = std::min(largest_cache_bytes(), bytes / 4);
      bytes -= bench.between_bytes;
    }
    BenchSubject subject{{},
                         model_.settings,
                         {true, model_.settings.compute, DType::f32},
                         std::max<int64_t>(1, request_.longest)};
    subject.model = bench_model(model_.opened->spec, model_.table, subject.policy, at, bytes / 2,
                                DenseLayer::as_in_model);
    ProfileOptions options;
    options.seconds = seconds;
    options.max_bytes = bytes;
    options.most_tokens = std::max<int64_t>(2, request_.tokens);
    options.quick = true;
    options.shared_experts = request_.shards.group().divided();
    options.whole = false;
    const ModelSpec& spec = model_.opened->spec;
    options.expert_tokens =
        spec.experts > 0
            ? std::max<int64_t>(1, request_.tokens * spec.experts_per_token / spec.experts)
            : 0;
    options.most_samples = 12;
    options.token_points = 6;
    options.expert_points = 8;
    if (of.host_reaches) options.cores = team.workers;
    return profile_place(bench, subject, options);
  }

  void add(const std::vector<Place>& places, const PlaceProfile& profile) {
    for (const Place at : places) {
      const std::string& name = place(at).budget.name;
      RunTable table;
      table.table = std::make_shared<const CostTable>(profile.entries, links_of(at), name);
      table.origin = {name, machine_json(model_.opened->topology), seconds_now()};
      set_spread(table.origin, profile.spread);
      model_.tables.by_place.insert_or_assign(name, std::move(table));
    }
  }

  std::vector<CostLink> links_of(Place at) {
    const ComputePlace& of = place(at);
    if (of.memory != SpaceKind::device) return {};
    if (!of.host_reaches) {
      Device* const device = of.device.get();
      return measure_link_costs({&device, 1}, .3, host_bytes_);
    }
    const LinkRates stated = of.device->link_rates().value_or(LinkRates{});
    const auto link = [&](const std::string& name, const LinkRate& rate) {
      if (rate.bytes_per_s > 0)
        return CostLink{name, rate.bytes_per_s, rate.latency_s, rate.bytes_per_s};
      if (memory_rate_ == 0) memory_rate_ = memory_rate();
      return CostLink{name, memory_rate_, rate.latency_s, memory_rate_};
    };
    return {link("host->" + of.budget.name, stated.in),
            link(of.budget.name + "->host", stated.out)};
  }

  PlacedModel& model_;
  const PlanRequest& request_;
  double seconds_;
  Stopwatch watch_;
  uint64_t host_bytes_ = 0;
  double memory_rate_ = 0;
};

}  // namespace

bool fits_nowhere(const PlacedModel& model) {
  uint64_t most = 0;
  for (const ComputePlace& place : model.opened->devices.places) {
    most += std::min(place.budget.bytes, kAnyBudget);
  }
  return parameter_bytes(model) > most;
}

void complete_tables(PlacedModel& model, const PlanRequest& request, double seconds) {
  StartTables(model, request, seconds).complete();
}

}  // namespace hearth
