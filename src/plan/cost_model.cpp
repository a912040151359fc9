#include "plan/cost_model.h"

#include <algorithm>
#include <cmath>

namespace hearth {

namespace {

double bytes_of(const Port& p, double tokens) {
  return (static_cast<double>(p.rows_per_token) * tokens + static_cast<double>(p.extra_rows)) *
         static_cast<double>(p.cols) * static_cast<double>(size_of(p.dtype));
}

/// Bytes of the rows that a task touches for so many tokens; what does not grow with tokens is
/// small.
double row_bytes(const Task& task, double tokens) {
  double bytes = 0;
  for (const BufferUse& use : task.uses) {
    if (use.port.rows_per_token > 0) bytes += bytes_of(use.port, tokens);
  }
  return bytes;
}

/// Of the links that a copy passes while no other copy does.
LinkRate link_alone(const Schedule& schedule, const Route& route,
                    std::span<const LinkRates> links) {
  LinkRate alone;
  const auto pass = [&](const LinkRate& link) {
    if (link.bytes_per_s <= 0) return;
    if (alone.bytes_per_s <= 0 || link.bytes_per_s < alone.bytes_per_s) {
      alone.bytes_per_s = link.bytes_per_s;
    }
  };
  const auto has_link = [&](Place place) {
    return !schedule.is_host(place) && static_cast<size_t>(place) < links.size();
  };
  if (has_link(route.from)) pass(links[static_cast<size_t>(route.from)].out);
  if (has_link(route.to)) pass(links[static_cast<size_t>(route.to)].in);
  alone.latency_s = copy_latency(schedule, route, links);
  return alone;
}

/// What a copy carries for so many tokens. Rows count as evenly spread over the experts.
double copied_bytes(const Task& copy, double tokens, const ModelSpec& spec) {
  if (info_of(copy.uses.front().port.value).of_columns) return 0;  // nothing is divided
  return share_of_experts(copy, spec) * bytes_of(copy.uses.front().port, tokens);
}

/// A copy of what a task before it wrote. `tokens`: of its micro-batch.
TaskCost copy_cost(const Schedule& schedule, const Task& task, double tokens, const ModelSpec& spec,
                   const CostRates& rates) {
  TaskCost cost;
  const double bytes = copied_bytes(task, tokens, spec);
  if (bytes <= 0) return cost;
  const LinkRate link = link_alone(schedule, copy_route(schedule, task), rates.links);
  cost.link_s = link.latency_s;
  if (link.bytes_per_s > 0) {
    cost.link_s += bytes / link.bytes_per_s;
  } else if (rates.row_bytes_per_s > 0) {
    cost.memory_s = share_of_experts(task, spec) * row_bytes(task, tokens) / rates.row_bytes_per_s;
  }
  return cost;
}

const char* phase_of(const Task& task) {
  if (task.kind == TaskKind::head) return "loss";
  if (task.kind == TaskKind::copy) return "copy";
  if (kind_costs(task.kind).ends_step) return "update";
  return name_of(task.phase).data();
}

}  // namespace

double RateCurve::at(double rows) const {
  HEARTH_CHECK(!points.empty(), "rate curve: nothing measured");
  if (rows <= points.front().rows) return points.front().flops_per_s;
  for (size_t i = 1; i < points.size(); ++i) {
    const Point &a = points[i - 1], &b = points[i];
    if (rows > b.rows) continue;
    const double share = std::log(rows / a.rows) / std::log(b.rows / a.rows);
    return a.flops_per_s + share * (b.flops_per_s - a.flops_per_s);
  }
  return points.back().flops_per_s;
}

namespace {

/// Seconds of moving memory for ranks.
double seconds_of_bytes(double bytes, const RankCosts& ranks) {
  return ranks.sweep_bytes_per_s > 0 ? bytes / ranks.sweep_bytes_per_s * ranks.sweeps : 0;
}

/// Seconds in which the links between ranks pass a task's bytes, if they are free.
double seconds_between(const Task& task, const BatchWork& batch, const ModelSpec& spec,
                       const ParameterTable& table, const RankCosts& ranks) {
  if (!kind_costs(task.kind).talks || ranks.shards.ranks == 1) return 0;
  const Traffic traffic = traffic_of(task, ranks, table, routed_rows(spec, batch.tokens));
  return std::max(ranks.links.busy_s(traffic),
                  seconds_of_bytes(copied_bytes(traffic, ranks.shards), ranks));
}

/// The cost at a place whose cores no other rank uses.
TaskCost cost_alone(const Task& task, const BatchWork& batch, const ModelSpec& spec,
                    const ParameterTable& table, const CostRates& rates) {
  TaskCost cost;
  const auto at = static_cast<size_t>(task.place);
  if (at < rates.tables.size() && rates.tables[at].table) {
    const CostEntry* entry = cost_entry(rates.tables[at], task, spec);
    if (entry != nullptr) cost.compute_s = predicted_seconds(*entry, task, batch, spec, table);
    return cost;
  }
  if (kind_costs(task.kind).by_parameters) {
    const double rate =
        task.kind == TaskKind::norm ? rates.norm_params_per_s : rates.update_params_per_s;
    if (rate > 0) cost.memory_s = task_parameters(task, table) / rate;
    return cost;
  }
  if (batch.tokens <= 0) return cost;
  const bool backward = task.phase == Phase::backward;
  if (task.work.per_token > 0) {
    const bool experts = task.kind == TaskKind::experts;
    const double rows = experts ? batch.tokens * static_cast<double>(spec.experts_per_token) /
                                      static_cast<double>(spec.experts)
                                : batch.tokens;
    const RateCurve& curve = experts ? (backward ? rates.experts_backward : rates.experts_forward)
                                     : (backward ? rates.linear_backward : rates.linear_forward);
    cost.compute_s += task.work.per_token * batch.tokens / curve.at(rows);
  }
  if (task.work.per_pair > 0) {
    const double rate = backward ? rates.attention_backward : rates.attention_forward;
    cost.compute_s += task.work.per_pair * batch.pairs(task.work.window) / rate;
  }
  if (task.work.per_trained > 0) {
    cost.compute_s += task.work.per_trained * batch.trained / rates.loss;
  }
  cost.memory_s =
      kind_costs(task.kind).passes * row_bytes(task, batch.tokens) / rates.row_bytes_per_s;
  return cost;
}

}  // namespace

TaskCost task_cost(const Schedule& schedule, const Task& task, const BatchWork& batch,
                   const ModelSpec& spec, const ParameterTable& table, const CostRates& rates) {
  if (task.kind == TaskKind::copy) return copy_cost(schedule, task, batch.tokens, spec, rates);
  const RankCosts& ranks = rates.ranks;
  TaskCost cost;
  if (kind_costs(task.kind).talks || task.kind == TaskKind::shard) {
    if (ranks.shards.shards == 1 && ranks.shards.ranks == 1) return cost;
    cost.memory_s = seconds_of_bytes(swept_bytes(task, ranks, table), ranks);
    if (kind_costs(task.kind).talks) {
      cost.link_s =
          operations_of(task, ranks, table) * ranks.links.latency_s() +
          seconds_between(task, batch, spec, table, ranks) +
          (ranks.shards.ranks > 1 ? staged_seconds(schedule, task, ranks, table, rates.links) : 0);
    }
    return cost;
  }
  cost = cost_alone(task, batch, spec, table, rates);
  cost.compute_s *= kind_costs(task.kind).sweeps ? ranks.sweeps : ranks.products;
  cost.memory_s *= ranks.sweeps;
  return cost;
}

StepCost step_cost(const Schedule& schedule, std::span<const BatchWork> batches,
                   const ModelSpec& spec, const ParameterTable& table, const CostRates& rates) {
  StepCost sum;
  for (const Task& task : schedule.tasks) {
    const TaskCost cost =
        task_cost(schedule, task, work_of(task.rows, batches), spec, table, rates);
    sum.compute_s += cost.compute_s;
    sum.memory_s += cost.memory_s;
    sum.link_s += cost.link_s;
    sum.phases[phase_of(task)] += cost.total_s();
    sum.kinds[std::string(name_of(task.kind))] += cost.total_s();
  }
  return sum;
}

std::vector<TaskDemand> task_demands(const Schedule& schedule, std::span<const BatchWork> batches,
                                     const ModelSpec& spec, const ParameterTable& table,
                                     const CostRates& rates) {
  std::vector<TaskDemand> demands;
  demands.reserve(schedule.tasks.size());
  for (const Task& task : schedule.tasks) {
    const BatchWork batch = work_of(task.rows, batches);
    const TaskCost cost = task_cost(schedule, task, batch, spec, table, rates);
    if (task.kind != TaskKind::copy) {
      const double between = seconds_between(task, batch, spec, table, rates.ranks);
      demands.push_back({cost.total_s() - between, 0, between});
      continue;
    }
    const double bytes = copied_bytes(task, batch.tokens, spec);
    const double latency =
        bytes > 0 ? copy_latency(schedule, copy_route(schedule, task), rates.links) : 0;
    demands.push_back({latency + cost.memory_s, bytes});
  }
  return demands;
}

std::vector<Collective> collectives_of(const Schedule& schedule, std::span<const BatchWork> batches,
                                       const ModelSpec& spec, const ParameterTable& table,
                                       const RankCosts& ranks) {
  const RankShards& shards = ranks.shards;
  const std::vector<int32_t> all(static_cast<size_t>(shards.ranks));
  std::vector<int32_t> groups;  // of ranks that exchange rows
  for (int32_t rank = 0; rank < shards.ranks; ++rank) groups.push_back(shards.member(rank, 0));
  std::vector<Collective> collectives;
  for (const Task& task : schedule.tasks) {
    if (!kind_costs(task.kind).talks) continue;
    const double tokens = work_of(task.rows, batches).tokens;
    Traffic traffic = traffic_of(task, ranks, table, routed_rows(spec, tokens));
    const double copies_s = seconds_of_bytes(copied_bytes(traffic, shards), ranks);
    const bool exchanges = task.kind == TaskKind::send_counts || task.kind == TaskKind::send_rows ||
                           task.kind == TaskKind::return_rows;
    collectives.push_back({std::move(traffic), exchanges ? groups : all, copies_s});
  }
  return collectives;
}

}  // namespace hearth
