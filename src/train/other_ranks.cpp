#include "train/other_ranks.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "budget/plan_fit.h"
#include "budget/rank_memory.h"
#include "setup/cost_cache.h"
#include "train/planned_run.h"
#include "train/rank_options.h"
#include "train/training_data.h"

namespace hearth {

namespace {

/// Tables of another rank's places that need not be measured: of --profile, and what rank 0 has of places
/// that are the same for all ranks.
RunTables known_here(const OpenedModel& opened, const TrainConfig& config,
                     const RunTables& of_leader) {
  RunTables tables;
  tables.best = of_leader.best;
  for (const ComputePlace& place : opened.devices.places) {
    const std::string& name = place.budget.name;
    if (!config.profile.empty()) {
      if (auto file = find_table(config.profile, name)) {
        tables.by_place[name] = {std::make_shared<const CostTable>(std::move(file->table)),
                                 file->origin, TableSource::profile, false};
        continue;
      }
    }
    const RunTable* const same = of_leader.find(name);
    if (same != nullptr && !name.starts_with("virtual")) tables.by_place[name] = *same;
  }
  return tables;
}

bool all_are_paced(const OpenedModel& opened) {
  return std::ranges::all_of(opened.devices.of_model.all(),
                             [&](Place at) { return opened.place(at).costs != nullptr; });
}

std::optional<RankSpeed> measured_speed(TrainedModel model, PlanRequest request, RunTables tables,
                                        int32_t rank) {
  request.shards.rank = rank;
  const Rates rates = all_are_paced(*model.opened) ? Rates::none : Rates::measured;
  return speed_of(measured_model(std::move(model), request, rates, std::move(tables)), rank);
}

bool attends(const PlanRequest& request, int32_t rank) {
  return rank < request.shards.attention_ranks;
}

/// Ranks whose memory the plan of rank 0 does not speak for: of each role and list of devices one, which
/// needs as much as any. Attention ranks are alike; the last expert rank has the most experts.
std::vector<int32_t> ranks_with_devices(const RankMachines& machines, const PlanRequest& request) {
  std::map<std::pair<bool, std::string>, int32_t> found;
  for (int32_t rank = 1; rank < request.shards.ranks; ++rank) {
    const std::pair key(attends(request, rank), machines.devices(rank));
    if (key.first) found.try_emplace(key, rank);
    if (!key.first) found[key] = rank;
  }
  std::vector<int32_t> ranks;
  for (const auto& [key, rank] : found) ranks.push_back(rank);
  return ranks;
}

/// What a rank lacks at its devices. The host's memory is that of all ranks.
std::string lack_of_rank(const PlacedModel& planned, int32_t rank) {
  Plan of;
  of.places = planned.plan.places;
  of.places[kHostPlace].peak = 0;
  const std::string missing = what_is_missing(of);
  return missing.empty() ? missing : "rank " + std::to_string(rank) + ": " + missing;
}

}  // namespace

RankMachines::RankMachines(const TrainConfig& config, std::shared_ptr<const OpenedModel> leader)
    : config_(config), leader_(std::move(leader)) {}

std::string RankMachines::devices(int32_t rank) const {
  return rank == 0 ? config_.devices : devices_of(config_.rank_devices, rank, config_.devices);
}

std::shared_ptr<const OpenedModel> RankMachines::of(int32_t rank) {
  if (const auto known = opened_.find(rank); known != opened_.end()) return known->second;
  TrainConfig own = config_;
  own.devices = devices(rank);
  own.named_rank = rank;
  std::shared_ptr<const OpenedModel>& opened = opened_[rank];
  if (config_.process_ranks > 1 && names_gpu(own.devices)) return opened;
  const bool on_host = std::ssize(leader_->devices.places) == leader_->devices.hosts;
  const bool alike = on_host && own.devices == config_.devices;
  opened = alike ? leader_ : opened_for_rank(*leader_, own);
  if (!alike) require_ranks(own, opened->devices);
  return opened;
}

OtherRanks ranks_here(RankMachines& machines, const TrainConfig& config, const PlanRequest& request,
                      const PlacedModel& leader, const ModelOfRank& trained) {
  OtherRanks others;
  others.speeds.push_back({0});
  std::set<std::pair<bool, std::string>> known{{true, machines.devices(0)}};
  for (int32_t rank = 1; rank < request.shards.ranks; ++rank) {
    const std::string devices = machines.devices(rank);
    if (!known.emplace(attends(request, rank), devices).second) continue;
    RankSpeed& speed = others.speeds.emplace_back(RankSpeed{rank});
    if (devices == machines.devices(0)) continue;
    const auto opened = machines.of(rank);
    if (!opened) continue;
    const RunTables tables = known_here(*opened, config, leader.tables);
    speed = measured_speed(trained(opened), request, tables, rank).value_or(speed);
  }
  others.lack = [&machines, &request, trained](const PlacedModel& plan) {
    RolesLack lack;
    for (const int32_t rank : ranks_with_devices(machines, request)) {
      const auto opened = machines.of(rank);
      if (!opened || std::ssize(opened->devices.places) == opened->devices.hosts) continue;
      const PlacedModel own = placed_for_rank(trained(opened), request, *plan.plan.train, rank);
      std::string& of_role = attends(request, rank) ? lack.attention : lack.experts;
      if (of_role.empty()) of_role = lack_of_rank(own, rank);
    }
    return lack;
  };
  return others;
}

OtherRanks ranks_told(const TrainConfig& config, const PlanRequest& request) {
  OtherRanks others;
  others.speeds.push_back({0});
  std::set<std::pair<bool, std::string>> known{{true, ""}};
  for (int32_t rank = 1; rank < request.shards.ranks; ++rank) {
    const auto at = static_cast<size_t>(rank);
    RankSpeed speed;
    std::string text = at < config.rank_speeds.size() ? config.rank_speeds[at] : "";
    if (!text.empty()) {
      speed = speed_in(text);
      speed.rank = 0;
      text = speed_text(speed);
    }
    speed.rank = rank;
    if (known.emplace(attends(request, rank), text).second) others.speeds.push_back(speed);
  }
  return others;
}

std::string own_speed(const TrainConfig& config, int32_t rank, Reporter& reporter) {
  try {
    const std::shared_ptr<const OpenedModel> opened = open_model(config);
    std::optional<RankSpeed> speed;
    if (all_are_paced(*opened)) {
      speed = measured_speed(trained_model(opened, config), training_request(config, nullptr), {},
                             rank);
    } else {
      const TrainingData data(config, *opened, reporter);
      const TrainConfig chosen = with_choices(config, data.choices);
      speed = measured_speed(trained_model(opened, chosen), training_request(chosen, &data),
                             known_here(*opened, config, {}), rank);
    }
    return speed ? speed_text(*speed) : std::string();
  } catch (const Error&) {
    return {};
  }
}

}  // namespace hearth
