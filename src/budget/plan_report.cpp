#include "budget/plan_report.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <set>

#include "base/counted.h"
#include "base/setting.h"
#include "base/size_text.h"
#include "base/system.h"
#include "budget/data_report.h"
#include "budget/domain_choice.h"
#include "budget/placement_report.h"
#include "budget/policy_choice.h"
#include "budget/rank_memory.h"
#include "budget/rank_rates.h"
#include "budget/zebra_choice.h"
#include "device/link.h"
#include "model/adapters.h"
#include "setup/model_digest.h"

namespace hearth {

namespace {

template <class... Values>
std::string format(const char* pattern, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

/// "1.23 s", "4 min 5 s", "2 h 3 min", "5 d 6 h".
std::string duration(double seconds) {
  constexpr double kMost = 1e14;  // beyond it no number of days would be read
  if (!(seconds >= 100 && seconds < kMost)) return format("%.3g s", seconds);
  const auto s = static_cast<int64_t>(seconds);
  const auto two = [](int64_t a, const char* unit, int64_t b, const char* smaller) {
    return std::to_string(a) + " " + unit + " " + std::to_string(b) + " " + smaller;
  };
  if (s < 3600) return two(s / 60, "min", s % 60, "s");
  if (s < 48 * 3600) return two(s / 3600, "h", s % 3600 / 60, "min");
  return two(s / 86400, "d", s % 86400 / 3600, "h");
}

/// A node of the host that has nothing of the run.
bool is_unused(const Plan& plan, const PlaceLines& place) {
  return &place != &plan.host() && place.peak == 0 && place.budget.name.starts_with("host:");
}

std::string memory_text(const Plan& plan) {
  std::string text;
  for (const PlaceLines& place : plan.places) {
    if (is_unused(plan, place)) continue;
    text += &place == &plan.host() ? "memory of the process (host)\n"
                                   : "\nmemory of " + place.budget.name + "\n";
    for (const MemoryLine& line : place.lines) {
      if (line.id.use == MemoryUse::reached && line.bytes == 0) continue;
      text += format("  %-40s %14s   ", line.name.c_str(), size_text(line.bytes).c_str()) +
              line.basis + "\n";
    }
    const bool bounded = place.budget.bytes < std::numeric_limits<uint64_t>::max();
    text += format("  %-40s %14s   %s: %s\n", "peak", size_text(place.peak).c_str(),
                   bounded ? ("of " + size_text(place.budget.bytes)).c_str() : "no limit",
                   place.fits() ? "fits" : "DOES NOT FIT");
  }
  for (size_t i = 0; i < plan.others.size(); ++i) {
    text += "\nrank " + std::to_string(i + 1) + ":";
    for (const PlaceLines& place : plan.others[i]) {
      const bool on_host = &place == &plan.others[i].front();
      text += (on_host ? " " : ", ") + size_text(place.peak) +
              (on_host ? " of host memory"
                       : " of the memory of " + place.budget.name +
                             (place.fits() ? "" : ", WHICH HAS LESS"));
    }
  }
  return plan.others.empty() ? text : text + "\n";
}

/// What is known of the link without measuring it: `--devices virtual` says it.
Json links_json(const LinkRates& links) {
  const auto way = [](const LinkRate& rate) {
    return JsonObject{{"bytes_per_s", rate.bytes_per_s}, {"latency_s", rate.latency_s}};
  };
  JsonObject json{{"to_device", way(links.in)}, {"from_device", way(links.out)}};
  if (links.root) json.emplace_back("root_bytes_per_s", links.root->in.bandwidth());
  return json;
}

/// null: no limit.
Json bytes_or_null(uint64_t bytes) {
  return bytes == std::numeric_limits<uint64_t>::max() ? Json(nullptr) : Json(bytes);
}

/// Places that the model has not are those of other ranks.
JsonArray memory_json(const OpenedModel& opened, const std::vector<PlaceLines>& of_places) {
  JsonArray places;
  for (const PlaceLines& place : of_places) {
    Json of;
    of["place"] = place.budget.name;
    of["peak_bytes"] = place.peak;
    of["budget_bytes"] = bytes_or_null(place.budget.bytes);
    if (places.size() < opened.devices.places.size()) {
      const ComputePlace& at = opened.devices.places[places.size()];
      const auto links = at.device->link_rates();
      if (links && place.budget.in_list) of["links"] = links_json(*links);
      if (at.costs && at.paced) of["costs"] = at.costs->digest().hex();
    }
    if (place.measured_peak) of["measured_peak_bytes"] = *place.measured_peak;
    JsonArray lines;
    for (const MemoryLine& line : place.lines) {
      Json entry;
      entry["name"] = line.name;
      entry["bytes"] = line.bytes;
      entry["basis"] = line.basis;
      if (line.measured) entry["measured"] = *line.measured;
      lines.push_back(std::move(entry));
    }
    of["lines"] = std::move(lines);
    places.push_back(std::move(of));
  }
  return places;
}

/// "reads -> writes", by the names of the values, each once (the head reads some of every layer).
std::string values_text(const Task& task) {
  std::string reads, writes;
  std::set<std::pair<Value, bool>> named;
  for (const BufferUse& use : task.uses) {
    if (use.port.access == Access::temporary) continue;
    const bool is_read = use.port.access == Access::read;
    if (!named.emplace(use.port.value, is_read).second) continue;
    std::string& side = is_read ? reads : writes;
    side += side.empty() ? "" : " ";
    side += info_of(use.port.value).name;
  }
  return reads + " -> " + writes;
}

/// A line a task, in the order of the schedule.
std::string every_task(const Schedule& schedule) {
  std::string text;
  size_t number = 0;
  for (const Task& task : schedule.tasks) {
    text += format("  %4zu  %-54s", number++, describe(task).c_str()) + values_text(task) + "\n";
  }
  return text;
}

/// A line for the tasks that differ in layer and micro-batch alone, where the first of them stands.
std::string kinds_of_tasks(const Schedule& schedule, const StepCost& work) {
  struct Line {
    std::string name, values;
    int64_t count = 0;
    int32_t least = 0, most = 0;  // layers
  };
  std::vector<Line> lines;
  std::map<std::string, size_t> known;
  for (const Task& task : schedule.tasks) {
    const std::string name =
        std::string(name_of(task.kind)) + " " + std::string(name_of(task.phase));
    const std::string values = values_text(task);
    const auto [at, is_new] = known.emplace(name + values, lines.size());
    if (is_new) lines.push_back({name, values, 0, task.layer, task.layer});
    Line& line = lines[at->second];
    ++line.count;
    line.least = std::min(line.least, task.layer);
    line.most = std::max(line.most, task.layer);
  }
  std::string text;
  for (const Line& line : lines) {
    std::string layers;
    if (line.most >= 0) {
      const int32_t least = std::max(line.least, 0);
      layers = least == line.most
                   ? "layer " + std::to_string(least)
                   : "layers " + std::to_string(least) + " to " + std::to_string(line.most);
    }
    text += format("  %5lld  %-19s %-16s ", static_cast<long long>(line.count), line.name.c_str(),
                   layers.c_str()) +
            line.values + "\n";
  }
  if (work.kinds.empty()) return text;
  text += "\nseconds by kind:";
  for (const auto& [kind, seconds] : work.kinds) text += " " + kind + format(" %.4g", seconds);
  return text + "\n";
}

/// Whether tasks run at the same time.
bool plan_overlaps(const PlanTimes& times) {
  return times.step.time_s < 0.995 * times.work.total_s();
}

std::string time_text(const PlacedModel& model, const PlanTimes& times) {
  const double step = times.step.time_s, bound = times.bound.total_s();
  std::string text = "\n";
  for (const std::string& line : table_lines(model)) text += line + "\n";
  for (const std::string& line : times.warnings) text += line + "\n";
  if (model.rates && model.plan.shards.ranks > 1) {
    text += rank_links_text(model.rates->costs.ranks) + "\n";
  }
  if (times.data) {
    for (const std::string& line : data_lines(*times.data, times.steps)) text += line + "\n";
  }
  if (!times.known) {
    return text + "time of a step: not predicted, " + times.unknown + "\n";
  }
  text += "time of a step (" + times.basis + ", " + format("%.0f tokens", times.tokens) +
          (times.popularity.empty() ? "" : ", " + times.popularity) + "), predicted from " +
          times.source + ": " + duration(step) + ", " +
          format("%.4g tokens/s", times.tokens / step) + "; limited by " + times.use.limit() +
          "\n ";
  for (const auto& [phase, seconds] : times.work.phases) {
    text += " " + phase + format(" %.0f %%", 100 * seconds / times.work.total_s());
  }
  if (plan_overlaps(times)) {
    text += "; " + duration(times.work.total_s()) + " of tasks, beside each other";
  }
  text += "\nbound of that step: " + duration(bound) +
          format(" (%.0f %% of the prediction): products ", 100 * bound / step) +
          duration(times.bound.products_s) +
          format(" for %.4g GFLOP, update ", times.bound.flops / 1e9) +
          duration(times.bound.update_s) + "\n";
  return text;
}

/// What people ask first: does it fit, how long does it take, how much disk.
std::string answers_text(const Plan& plan, const PlanTimes& times, const std::string& refusal,
                         uint64_t disk) {
  std::string text = refusal.empty() ? "fits:" : "does not fit: " + refusal;
  for (const PlaceLines& place : plan.places) {
    if (!refusal.empty()) break;
    if (is_unused(plan, place)) continue;
    text += (&place == &plan.host() ? " " : ", ") + size_text(place.peak);
    const bool bounded = place.budget.bytes < std::numeric_limits<uint64_t>::max();
    if (bounded) text += " of " + size_text(place.budget.bytes);
    text += &place == &plan.host() ? " of host memory" : " of the memory of " + place.budget.name;
  }
  text += "\nwhole run: ";
  if (times.steps) {
    text += counted(*times.steps, "step");
    text += times.known ? ", " + duration(static_cast<double>(*times.steps) * times.step.time_s) +
                              ", besides evaluation and saving"
                        : "; its time is not predicted, " + times.unknown;
  } else {
    text += "give " + spelled(Setting::data) + " or " + spelled(Setting::steps) + " for its length";
    if (times.known) text += "; a step takes " + duration(times.step.time_s);
  }
  return text + "\ndisk: " + size_text(disk) + " for the result and the saved states\n\n";
}

/// Which logical shards and experts each rank computes.
JsonArray ranks_json(const Plan& plan, const ModelSpec& spec) {
  const ShardMap map = plan.shards.map();
  JsonArray ranks;
  for (int32_t rank = 0; rank < plan.shards.ranks; ++rank) {
    JsonArray layers;
    for (int32_t layer = 0; layer < spec.layers; ++layer) {
      if (!spec.has_experts(layer)) continue;
      const ExpertRanks group = plan.shards.experts(layer);
      const auto [first, last] = group.of(plan.shards.position_of(rank), spec.experts);
      JsonArray experts;
      for (int64_t e = first; e < last; ++e) experts.emplace_back(e);
      layers.emplace_back(std::move(experts));
    }
    const bool computes = rank < plan.shards.computing();
    const ShardRange shards = computes ? map.of(rank) : ShardRange{};
    const std::string host =
        plan.rank_hosts.empty() ? own_host_name() : plan.rank_hosts[static_cast<size_t>(rank)];
    ranks.emplace_back(
        JsonObject{{"rank", int64_t{rank}},
                   {"host", host},
                   {"shards", computes ? JsonArray{int64_t{shards.begin}, int64_t{shards.end - 1}}
                                       : JsonArray{}},
                   {"experts", std::move(layers)}});
  }
  return ranks;
}

}  // namespace

Json plan_json(const PlacedModel& model, const PlanTimes& times,
               const std::vector<PlaceLines>& memory, const std::vector<uint64_t>& of_ranks) {
  const Plan& plan = model.plan;
  const double step = times.step.time_s;
  const auto known = [&](Json value) { return times.known ? std::move(value) : Json(nullptr); };
  Json json;
  json["fits"] = plan.fits();
  json["time_s"] = known(step);
  json["bound_s"] = known(times.bound.total_s());
  json["limit"] = times.known ? Json(times.use.limit()) : Json(nullptr);
  json["tokens_per_step"] = times.tokens;
  json["tokens_per_s"] = known(times.tokens / step);
  json["time_basis"] = times.basis;
  if (!times.popularity.empty()) json["expert_popularity"] = times.popularity;
  JsonObject phases, kinds;
  for (const auto& [name, seconds] : times.work.phases) phases.emplace_back(name, seconds);
  for (const auto& [name, seconds] : times.work.kinds) kinds.emplace_back(name, seconds);
  json["phases"] = std::move(phases);
  json["kinds"] = std::move(kinds);
  json["steps"] = times.steps ? Json(*times.steps) : Json(nullptr);
  json["run_time_s"] =
      times.steps ? known(static_cast<double>(*times.steps) * step) : Json(nullptr);
  if (times.data) json["data"] = data_json(*times.data, times.steps);
  json["memory"] = memory_json(*model.opened, memory_by_rank(plan, memory, of_ranks));
  json["model"] = model_digest(*model.opened).hex();
  json["method"] = has_adapters(model.table) ? "lora" : "full";
  json["parallel"] = std::string(model.opened->devices.planner->name());
  json["policy"] = model.of_model.policy;
  if (model.policy) json["policy_choice"] = policy_json(model);
  json["bits"] = bits_of(model);
  json["devices"] = devices_json(model);
  json["places"] = places_json(model);
  json["costs"] = tables_json(model);
  json["stages"] = stages_json(model, model.placement.stages);
  if (const std::vector<Stage>& backward = model.placement.backward; !backward.empty()) {
    json["stages_backward"] = stages_json(model, backward);
  }
  if (model.of_model.hot) json["held_experts"] = held_experts_json(model);
  if (plan.shards.ranks > 1) {
    json["ranks"] = ranks_json(plan, model.opened->spec);
    json["direct_messages"] = plan.shards.direct;
    if (model.rates) json["rank_links"] = rank_links_json(model.rates->costs.ranks);
  }
  add_zebra_json(model, json);
  add_domains_json(model, times.tokens, json);
  json["workers"] = static_cast<int64_t>(model.opened->workers);
  json["compute_dtype"] = name_of(model.settings.compute);
  if (plan.train) {
    json["group"] = plan.train->group;
    json["recompute"] = plan.train->recompute ? "blocks" : "none";
    json["layer_inputs"] = plan.train->inputs_on_host ? "host" : "in_place";
    json["micro_batches"] = plan.train->schedule.micro_batches;
    json["tokens_per_micro_batch"] = plan.train->schedule.tokens;
    json["tasks"] = static_cast<int64_t>(plan.train->schedule.tasks.size());
  }
  return json;
}

namespace {

std::string streams_text(const Schedule& schedule) {
  return counted(static_cast<int64_t>(schedule.streams.size()), "stream");
}

}  // namespace

std::string plan_text(const PlacedModel& model, const PlanTimes& times, PlanDetail detail,
                      const std::string& refusal, uint64_t disk) {
  const Plan& plan = model.plan;
  const Schedule& schedule = plan.train->schedule;
  std::string stages;
  for (const std::string& line : stage_lines(model)) stages += line + "\n";
  for (const std::string& line : hot_lines(model)) stages += line + "\n";
  for (const std::string& line : zebra_lines(model, times)) stages += line + "\n";
  if (const std::string line = wire_line(model); !line.empty()) stages += line + "\n";
  for (const std::string& line : domain_lines(model)) stages += line + "\n";
  if (const std::string line = policy_line(model); !line.empty()) stages += line + "\n";
  return answers_text(plan, times, refusal, disk) + memory_text(plan) + "\n" + stages +
         "step: " + counted(static_cast<int64_t>(schedule.tasks.size()), "task") + " in " +
         streams_text(schedule) + " on " + places_text(model) + ", " +
         std::to_string(schedule.micro_batches) +
         (schedule.micro_batches == 1 ? " micro-batch" : " micro-batches") + " of at most " +
         counted(schedule.tokens, "token") + ", groups of " + std::to_string(plan.train->group) +
         (plan.train->recompute ? ", blocks recomputed" : "") +
         (plan.train->inputs_on_host ? ", their inputs wait on the host" : "") + "\n" +
         (detail == PlanDetail::tasks
              ? kinds_of_tasks(schedule, times.work) + "\n" + every_task(schedule)
              : "") +
         time_text(model, times);
}

}  // namespace hearth
