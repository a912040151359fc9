#include "plan/task_costs.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "plan/divided_bound.h"

namespace hearth {

namespace {

bool has_parameters(TaskKind kind) { return kind_costs(kind).by_parameters; }

/// The least seconds of an experts task with so many rows in all. No row takes less than the least
/// seconds per row of any call, and on a line between two points that is at one of them.
double least_experts_seconds(const CostEntry& entry, const BatchWork& batch,
                             const ModelSpec& spec) {
  const double most = std::max(1.0, batch.tokens);  // rows of one call
  double least = entry.at(most) / most;
  least = std::min(least, entry.at(1));
  for (const int64_t units : entry.units) {
    const auto rows = static_cast<double>(units);
    if (rows < most) least = std::min(least, entry.at(rows) / rows);
  }
  return least * batch.tokens * static_cast<double>(spec.experts_per_token);
}

/// Seconds that a stream needs for its tasks.
struct StreamBound {
  double products_s = 0, update_s = 0;
  double total_s() const { return products_s + update_s; }
};

}  // namespace

double share_of_experts(const Task& task, const ModelSpec& spec) {
  const bool shared = task.part.all() || task.part.guests;
  if (task.kind == TaskKind::experts && shared && !task.blocks.empty()) {
    const BlockUse& experts = task.blocks.front();  // of a rank that shares them, its own
    return static_cast<double>(experts.end - experts.begin) / static_cast<double>(spec.experts);
  }
  if (shared && (task.kind != TaskKind::copy || task.part.all())) return 1;
  return static_cast<double>(task.part.experts) / static_cast<double>(spec.experts);
}

double share_of_rows(const Task& task, const ModelSpec& spec) {
  if (task.kind != TaskKind::dispatch && task.kind != TaskKind::combine) return 1;
  const bool routes = task.kind == TaskKind::dispatch && task.phase != Phase::backward;
  if (routes && task.part.all()) return 1;
  const bool moves = std::ranges::any_of(task.uses, [&](const BufferUse& use) {
    const Value value = use.port.value;
    return value == Value::rows || value == Value::d_rows || value == Value::expert_out ||
           value == Value::d_expert_out ||
           (value == Value::residual && !spec.has_experts(task.layer));
  });
  return moves || task.uses.empty() ? share_of_experts(task, spec) : 0;
}

CostShape cost_shape(const Task& task, const ModelSpec& spec) {
  switch (task.kind) {
    case TaskKind::experts: return {spec.hidden, spec.expert_width};
    case TaskKind::mlp:
      return {spec.hidden,
              spec.has_shared_expert(task.layer) ? spec.shared_width : spec.dense_width};
    case TaskKind::attention: return {spec.hidden, spec.heads * spec.head_dim};
    case TaskKind::embed:
    case TaskKind::head: return {spec.hidden, spec.vocabulary};
    default: return {spec.hidden, spec.hidden};
  }
}

const CostEntry* cost_entry(const PlaceCosts& costs, const Task& task, const ModelSpec& spec) {
  if (!costs.table || !has_costs(task.kind)) return nullptr;
  return costs.table->find(task.kind, task.phase, costs.compute, costs.cores,
                           cost_shape(task, spec));
}

const CostEntry* divided_entry(const PlaceCosts& costs, const Task& task, const ModelSpec& spec) {
  Task experts = task;
  experts.kind = TaskKind::experts;
  return cost_entry(costs, experts, spec);
}

double swept_seconds(const PlaceCosts& costs, double bytes, const ModelSpec& spec) {
  constexpr double kUpdateBytes = 28;  // of a parameter: master, moments and gradient, in f32
  Task update;
  update.kind = TaskKind::update;
  const CostEntry* const entry = cost_entry(costs, update, spec);
  return entry == nullptr || bytes <= 0 ? 0 : entry->at(bytes / kUpdateBytes);
}

std::string untimed_tasks(const PlaceCosts& costs, Place place, const Schedule& schedule,
                          const ModelSpec& spec) {
  std::string names;
  if (!costs.table) return names;
  std::set<std::pair<TaskKind, Phase>> named;
  for (const Task& task : schedule.tasks) {
    if (task.place != place || !has_costs(task.kind)) continue;
    if (cost_entry(costs, task, spec) != nullptr) continue;
    if (!named.emplace(task.kind, task.phase).second) continue;
    names += names.empty() ? "" : ", ";
    names += name_of(task.kind);
    if (!has_parameters(task.kind)) names.append(" ").append(name_of(task.phase));
  }
  return names;
}

double task_parameters(const Task& task, const ParameterTable& table) {
  double n = 0;
  for (const BlockUse& use : task.blocks) {
    for (BlockId b = use.begin; b < use.end; ++b) {
      if (!table.block(b).owned) continue;
      for (TensorId id = table.block(b).begin; id < table.block(b).end; ++id) {
        if (table.tensor(id).trainable) n += static_cast<double>(table.tensor(id).size());
      }
    }
  }
  return n;
}

double experts_seconds(const CostEntry& entry, std::span<const int32_t> offsets, int64_t segments,
                       int64_t stride) {
  double sum = 0;
  for (size_t e = 0; e + 1 < offsets.size(); ++e) {
    int64_t rows = 0;
    for (int64_t s = 0; s < segments; ++s) {
      const int32_t* const begin = offsets.data() + s * stride + e;
      rows += begin[1] - begin[0];
    }
    if (rows > 0) sum += entry.at(static_cast<double>(rows));
  }
  return sum;
}

double pairs_of(std::span<const int32_t> query_offsets, std::span<const int32_t> key_offsets,
                int64_t window) {
  double sum = 0;
  for (size_t i = 0; i + 1 < query_offsets.size(); ++i) {
    const int64_t queries = query_offsets[i + 1] - query_offsets[i];
    const int64_t keys = key_offsets[i + 1] - key_offsets[i];
    const int64_t most = window > 0 ? window : keys;
    // Query q sees past + 1 + q keys, `most` at most. The first `rising` queries see fewer.
    const int64_t past = keys - queries;
    const int64_t rising = std::clamp<int64_t>(most - past, 0, queries);
    sum += static_cast<double>(rising) *
           (static_cast<double>(past) + (static_cast<double>(rising) + 1) / 2);
    sum += static_cast<double>(queries - rising) * static_cast<double>(most);
  }
  return sum;
}

namespace {

/// How many experts get rows, if rows are evenly spread.
double expert_calls(const BatchWork& batch, const ModelSpec& spec) {
  const double rows = batch.tokens * static_cast<double>(spec.experts_per_token);
  return std::min(rows, static_cast<double>(spec.experts));
}

}  // namespace

double task_units(const Task& task, const BatchWork& batch, const ModelSpec& spec,
                  const ParameterTable& table) {
  if (has_parameters(task.kind)) return task_parameters(task, table);
  if (batch.tokens <= 0) return 0;
  if (task.kind != TaskKind::experts) return batch.tokens;
  return batch.tokens * static_cast<double>(spec.experts_per_token) / expert_calls(batch, spec);
}

double predicted_seconds(const CostEntry& entry, const Task& task, const BatchWork& batch,
                         const ModelSpec& spec, const ParameterTable& table) {
  const double units = task_units(task, batch, spec, table);
  if (units <= 0) return 0;
  if (has_parameters(task.kind)) return entry.at(units);
  if (task.kind == TaskKind::experts) {
    return share_of_experts(task, spec) * expert_calls(batch, spec) * entry.at(units);
  }
  const bool pairs = task.kind == TaskKind::attention;
  return share_of_rows(task, spec) * entry.at(units, pairs ? batch.pairs(task.work.window) : 0);
}

namespace {

/// Which work of a step: parts of one layer's experts for the same rows, at several places.
using WorkKey = std::tuple<int32_t, int32_t, Phase>;

/// Adds what a stream takes if it computes all rows of a work. A stream with several runs of the
/// experts has several tasks of it.
void add_share(DividedWork& work, size_t stream, double seconds) {
  const auto same = [&](const DividedWork::Share& share) { return share.stream == stream; };
  if (std::ranges::none_of(work.shares, same)) work.shares.push_back({stream, seconds});
}

}  // namespace

StepBound step_bound_by_tables(const Schedule& schedule, std::span<const BatchWork> batches,
                               const ModelSpec& spec, const ParameterTable& table,
                               const MachineRates& rates, std::span<const PlaceCosts> places) {
  StepBound bound;
  std::vector<StreamBound> of_streams(schedule.streams.size());
  std::map<WorkKey, DividedWork> divided;
  for (const Task& task : schedule.tasks) {
    if (task.phase == Phase::recompute || task.kind == TaskKind::copy) continue;
    const auto at = static_cast<size_t>(task.place), on = static_cast<size_t>(task.stream);
    const BatchWork batch = work_of(task.rows, batches);
    const double flops = task.rows.none() ? 0 : flops_of(task.work, batch);
    bound.flops += flops;
    StreamBound& stream = of_streams[on];
    const CostEntry* entry = places[at].table ? cost_entry(places[at], task, spec) : nullptr;
    if (task.kind == TaskKind::experts && !task.part.all()) {
      double seconds = 0;
      if (entry != nullptr) seconds = least_experts_seconds(*entry, batch, spec);
      if (!places[at].table) seconds = flops / share_of_experts(task, spec) / rates.flops_per_s;
      add_share(divided[{task.layer, task.rows.begin, task.phase}], on, seconds);
      continue;
    }
    if (!places[at].table) {
      if (flops > 0) stream.products_s += flops / rates.flops_per_s;
      if (task.kind == TaskKind::update) {
        stream.update_s += task_parameters(task, table) / rates.update_params_per_s;
      }
      continue;
    }
    if (entry == nullptr) continue;
    const double seconds = task.kind == TaskKind::experts
                               ? least_experts_seconds(*entry, batch, spec)
                               : predicted_seconds(*entry, task, batch, spec, table);
    (has_parameters(task.kind) ? stream.update_s : stream.products_s) += seconds;
  }
  StreamBound most;
  std::vector<double> fixed;
  for (const StreamBound& stream : of_streams) {
    if (stream.total_s() > most.total_s()) most = stream;
    fixed.push_back(stream.total_s());
  }
  std::vector<DividedWork> work;
  for (auto& [key, of] : divided) work.push_back(std::move(of));
  bound.update_s = most.update_s;
  bound.products_s = std::max(least_time_of_longest(fixed, work) - most.update_s, most.products_s);
  return bound;
}

}  // namespace hearth
