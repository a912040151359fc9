#include "budget/rank_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/setting.h"
#include "budget/run_rates.h"
#include "runtime/shared_parameters.h"
#include "runtime/shared_speed.h"

namespace hearth {

namespace {

/// What is usual where nobody has measured: Ethernet of 1 Gbit/s between hosts, memory within one.
constexpr LinkRate kBetweenHosts{1.18e8, 5e-5}, kWithinHost{2e9, 1e-5};

/// AdamW reads four f32 of a parameter and writes three.
constexpr double kUpdateBytes = 28;
constexpr uint64_t kSharedBytes = uint64_t{32} << 20;  // of each rank, for measurements

/// The links of all pairs that the host's table has; empty: it lacks some.
std::map<std::string, PairRate> profiled_pairs(const CostTable& table, int32_t ranks) {
  std::map<std::string, PairRate> pairs;
  for (const CostLink& link : table.links()) {
    pairs[link.link] = {link.bytes_per_s, link.latency_s, link.together};
  }
  for (int32_t from = 0; from < ranks; ++from) {
    for (int32_t to = 0; to < ranks; ++to) {
      if (from != to && !pairs.contains(pair_name(from, to))) return {};
    }
  }
  return pairs;
}

/// Pairs without a measurement: all that a host sends at a time shares its link.
RankLinks usual_links(const std::vector<std::string>& hosts) {
  std::map<std::string, double> on_host;
  for (const std::string& host : hosts) ++on_host[host];
  const auto all = static_cast<double>(hosts.size());
  return {hosts, [&](int32_t from, int32_t to) {
            const std::string& a = hosts[static_cast<size_t>(from)];
            const std::string& b = hosts[static_cast<size_t>(to)];
            const LinkRate& rate = a == b ? kWithinHost : kBetweenHosts;
            const double most =
                std::max(on_host[a] * (all - on_host[a]), on_host[b] * (all - on_host[b]));
            return PairRate{rate.bytes_per_s, rate.latency_s,
                            a == b ? rate.bytes_per_s : rate.bytes_per_s / most};
          }};
}

void set_links(RankCosts& costs, const PlacedModel& model, const PlanRequest& request) {
  const int32_t ranks = costs.shards.ranks;
  const auto table = table_at(model, kHostPlace);
  const auto pairs = table ? profiled_pairs(*table, ranks) : std::map<std::string, PairRate>{};
  if (costs.shards.are_threads && request.rank_links.bytes_per_s > 0) {
    costs.links = RankLinks(ranks, request.rank_links);
    costs.links_basis = spelled(Setting::rank_links);
    return;
  }
  std::vector<std::string> hosts = request.rank_hosts;
  hosts.resize(static_cast<size_t>(ranks));
  if (!pairs.empty()) {
    costs.links =
        RankLinks(hosts, [&](int32_t from, int32_t to) { return pairs.at(pair_name(from, to)); });
    costs.links_basis = "measured, of the host's cost table";
  } else if (costs.shards.are_threads) {
    costs.links = RankLinks(ranks, LinkRate{});
    costs.links_basis = "copies in memory";
  } else {
    costs.links = usual_links(hosts);
    costs.links_basis = "assumed; 'hearth profile' in a launch measures them";
  }
}

/// Bytes per second of sums, by the optimizer's speed.
double sweep_rate(const PlacedModel& model, const RunRates& rates) {
  const std::vector<PlaceCosts>& tables = rates.costs.tables;
  const auto parameters = static_cast<double>(trained_parameters(model.table));
  Task update;
  update.kind = TaskKind::update;
  const CostEntry* entry = tables.empty() || !tables.front().table
                               ? nullptr
                               : cost_entry(tables.front(), update, model.opened->spec);
  if (entry != nullptr && parameters > 0 && entry->at(parameters) > 0) {
    return kUpdateBytes * parameters / entry->at(parameters);
  }
  return kUpdateBytes * rates.costs.update_params_per_s;
}

}  // namespace

RankCosts rank_costs(const PlacedModel& model, const PlanRequest& request, const RunRates& rates) {
  RankCosts costs;
  costs.shards = request.shards;
  if (costs.shards.shards == 1 && costs.shards.ranks == 1) return costs;
  costs.sweep_bytes_per_s = sweep_rate(model, rates);
  costs.weight_bytes = model.settings.compute == Compute::bf16 ? 2 : 4;
  if (costs.shards.ranks == 1) return costs;
  costs.owners = owners_of(model.table, costs.shards);
  set_links(costs, model, request);
  const ComputePlace& host = model.opened->place(kHostPlace);
  const int64_t sharing = request.cpu_share.ranks;
  if (sharing == 1 || (host.costs && host.paced)) return costs;
  // As many as have cores of their own run at a time; the others take turns with them.
  const int64_t workers = host.teams.front().workers;
  const auto cores = std::ssize(model.opened->topology.worker_cpus());
  const int64_t at_a_time = std::clamp<int64_t>(cores / workers, 1, sharing);
  const double turns =
      std::max(1.0, static_cast<double>(sharing * workers) /
                        static_cast<double>(std::max<int64_t>(cores, at_a_time * workers)));
  SharedSpeed beside;
  if (at_a_time > 1 && !model.opened->described && !rates_are_assumed()) {
    const RateOptions options{*host.ops, model.settings.compute, static_cast<int>(workers),
                              {},        kSharedBytes,           trained_parameters(model.table)};
    beside = measure_shared_speed(*host.device, options, at_a_time);
  }
  costs.products = turns * beside.products;
  costs.sweeps = turns * beside.sweeps;
  return costs;
}

namespace {

std::string rate_text(double bytes_per_s) {
  if (bytes_per_s < 1e6) return fmt::format("{:.3g} kB/s", bytes_per_s / 1e3);
  if (bytes_per_s < 1e9) return fmt::format("{:.3g} MB/s", bytes_per_s / 1e6);
  return fmt::format("{:.3g} GB/s", bytes_per_s / 1e9);
}

}  // namespace

std::string rank_links_text(const RankCosts& ranks) {
  if (ranks.shards.ranks == 1) return {};
  const RankLinks& links = ranks.links;
  std::string text = fmt::format("links between {} ranks: ", ranks.shards.ranks);
  if (links.slowest() > 0) {
    text += rate_text(links.slowest());
    if (links.fastest() > 1.005 * links.slowest()) text += " to " + rate_text(links.fastest());
    text += fmt::format(", {:.3g} us (", links.latency_s() * 1e6) + ranks.links_basis + ")";
  } else {
    text += ranks.links_basis;
  }
  if (ranks.products > 1.005 || ranks.sweeps > 1.005) {
    text += fmt::format("; on shared cores products take {:.2f} times as long, sweeps {:.2f} times",
                        ranks.products, ranks.sweeps);
  }
  return text;
}

Json rank_links_json(const RankCosts& ranks) {
  const RankLinks& links = ranks.links;
  Json json;
  json["basis"] = ranks.links_basis;
  json["bytes_per_s"] =
      links.slowest() > 0 ? Json(JsonArray{links.slowest(), links.fastest()}) : Json(nullptr);
  json["latency_s"] = links.latency_s();
  json["products"] = ranks.products;
  json["sweeps"] = ranks.sweeps;
  return json;
}

}  // namespace hearth
