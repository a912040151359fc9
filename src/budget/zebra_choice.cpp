#include "budget/zebra_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error_format.h"
#include "base/setting.h"
#include "budget/placement_plan.h"
#include "plan/kind_costs.h"
#include "plan/zebra/expert_shift.h"
#include "plan/zebra/order_search.h"
#include "runtime/shared_parameters.h"

namespace hearth {

namespace {

/// The request of the first expert rank, which has the schedule of rank 0.
PlanRequest of_experts(const PlanRequest& request, const TrainSchedule& train) {
  PlanRequest of = request.scheduled_as(train);
  of.shards.rank = of.shards.attention_ranks;
  of.eval_tokens = of.decode_tokens = of.cache_rows = 0;
  return of;
}

std::shared_ptr<const ZebraRoles> roles_of(const PlacedModel& model, const PlanRequest& request) {
  auto roles = std::make_shared<ZebraRoles>();
  const PlanRequest of = of_experts(request, *model.plan.train);
  ParameterTable table = model.table;
  own_blocks(table, of.shards);
  PlacementPlan planned = plan_placement(subject_of(model).with_table(table), of);
  roles->plan = std::move(planned.plan);
  roles->table = std::move(planned.table);
  return roles;
}

/// The stage of a task of an attention rank, and whether it counts as forward.
struct StageOfTask {
  size_t stage;
  bool forward;
};
StageOfTask stage_of(const Task& task, int64_t layers) {
  const bool forward = task.phase == Phase::forward;
  // Of a device, also what belongs to no layer.
  const auto layer = static_cast<size_t>(std::clamp<int64_t>(task.layer, 0, layers));
  if (task.kind == TaskKind::copy) return {layer, forward};
  if (task.kind == TaskKind::embed) return {0, forward};
  if (task.kind == TaskKind::head) return {static_cast<size_t>(layers), true};
  if (forward) return {task.kind == TaskKind::combine ? layer + 1 : layer, true};
  const bool ends_layer = task.phase == Phase::backward &&
                          (task.kind == TaskKind::dispatch || task.kind == TaskKind::attention);
  return {ends_layer ? layer : layer + 1, false};
}

/// Adds up the tasks of a schedule, for a mean micro-batch.
class TimesOfRoles {
 public:
  TimesOfRoles(const PlacedModel& model, const StepWork& work) : model_(model), work_(work) {
    const RankShards& shards = model.plan.shards;
    const ModelSpec& spec = model.opened->spec;
    times_.attention_ranks = shards.attention_ranks;
    times_.expert_ranks = shards.expert_ranks - shards.attention_ranks;
    times_.experts = static_cast<int32_t>(spec.experts);
    times_.layers.resize(static_cast<size_t>(spec.layers));
    times_.stages.resize(static_cast<size_t>(spec.layers) + 1);
  }

  void add_attention() {
    const Schedule& schedule = model_.plan.train->schedule;
    for (const Task& task : schedule.tasks) {
      if (task.rows.none() || task.kind == TaskKind::experts) continue;
      const double seconds = seconds_of(schedule, task, model_.table);
      if (kind_costs(task.kind).talks) {
        ZebraLayerTimes& layer = times_.layers[static_cast<size_t>(task.layer)];
        add(task.kind == TaskKind::return_rows ? layer.back : layer.out,
            task.phase == Phase::forward, seconds);
      } else {
        const auto [stage, forward] = stage_of(task, model_.opened->spec.layers);
        add(times_.stages[stage], forward, seconds);
      }
    }
  }

  void add_experts(const ZebraRoles& roles) {
    const Schedule& schedule = roles.plan.train->schedule;
    for (const Task& task : schedule.tasks) {
      if (task.kind != TaskKind::experts) continue;
      const auto [first, last] =
          roles.plan.shards.experts(task.layer).own(model_.opened->spec.experts);
      const double seconds = seconds_of(schedule, task, roles.table) / std::max(1, last - first);
      ZebraLayerTimes& layer = times_.layers[static_cast<size_t>(task.layer)];
      add(layer.expert_there, task.phase == Phase::forward, seconds);
      add(layer.expert_here, task.phase == Phase::forward, seconds);
    }
  }

  ZebraTimes times() && { return std::move(times_); }

 private:
  double seconds_of(const Schedule& schedule, const Task& task, const ParameterTable& table) const {
    const TaskCost cost = task_cost(schedule, task, work_of(task.rows, work_.batches),
                                    model_.opened->spec, table, model_.rates->costs);
    return cost.total_s() / static_cast<double>(schedule.micro_batches);
  }
  static void add(ZebraTime& time, bool forward, double seconds) {
    (forward ? time.forward : time.backward) += seconds;
  }

  const PlacedModel& model_;
  const StepWork& work_;
  ZebraTimes times_;
};

bool knows_times(const PlacedModel& model, const StepWork& work) {
  return model.rates && knows_described_times(model) && !work.batches.empty();
}

bool is_none(const ExpertShift& shift) {
  return std::ranges::all_of(shift, [](int32_t moved) { return moved == 0; });
}

/// With the roles of that plan.
PlacedModel planned_again(PlacedModel model, const PlanRequest& request) {
  model = replanned(std::move(model), request);
  model.zebra = roles_of(model, request);
  return model;
}

void set_forecast(PlacedModel& model, ZebraForecast forecast) {
  auto roles = std::make_shared<ZebraRoles>(*model.zebra);
  roles->forecast = std::move(forecast);
  model.zebra = std::move(roles);
}

/// The order of the plan file.
void take_order(PlacedModel& model, PlanRequest& request, const TrainConfig& config) {
  const auto layers = static_cast<int32_t>(model.opened->spec.layers);
  const auto group = static_cast<int32_t>(model.plan.train->group);
  if (!is_zebra_order(*config.zebra_order, layers, group)) {
    throw usage_error("{}: zebra: order: not one of {} layers and groups of {}",
                      spelled(Setting::plan, config.plan_file), layers, group);
  }
  request.zebra_order = *config.zebra_order;
  model = planned_again(std::move(model), request);
}

}  // namespace

ZebraTimes zebra_times(const PlacedModel& model, const ZebraRoles& roles, const StepWork& work) {
  TimesOfRoles times(model, work);
  times.add_attention();
  times.add_experts(roles);
  return std::move(times).times();
}

void choose_zebra(PlacedModel& model, PlanRequest& request, const StepWork& work,
                  const TrainConfig& config) {
  if (request.shards.attention_ranks == 0 || !model.plan.train || !model.plan.fits()) return;
  if (config.zebra_order && !config.zebra_order->empty()) take_order(model, request, config);
  model.zebra = roles_of(model, request);
  if (!knows_times(model, work)) return;
  ZebraForecast forecast;
  forecast.times = zebra_times(model, *model.zebra, work);
  forecast.micro_batches = static_cast<int32_t>(model.plan.train->group);
  forecast.shift = request.shards.expert_shift;
  if (!config.expert_shift) {
    forecast.shift = choose_expert_shift(forecast.times, forecast.micro_batches).shift;
  }
  if (is_none(forecast.shift)) forecast.shift.clear();

  const auto plan_with = [&](const ZebraOrder& order) {
    PlanRequest again = request.scheduled_as(*model.plan.train);
    again.shards.expert_shift = forecast.shift;
    again.zebra_order = order;
    PlacedModel other = planned_again(model, again);
    if (!other.plan.fits()) return false;
    model = std::move(other);
    request.shards.expert_shift = again.shards.expert_shift;
    request.zebra_order = again.zebra_order;
    return true;
  };
  const bool moves = forecast.shift != request.shards.expert_shift;
  if (moves && !plan_with({})) forecast.shift = request.shards.expert_shift;
  if (!config.zebra_order) {
    const FoundOrder found =
        find_zebra_order(forecast.times, forecast.micro_batches, forecast.shift);
    if (found.is_other()) plan_with(found.order);
  }
  const ZebraOrder theorem_1 = theorem_1_order(forecast.times.count(), forecast.micro_batches);
  const ZebraOrder& order = request.zebra_order.empty() ? theorem_1 : request.zebra_order;
  forecast.run = simulate_zebra(forecast.times, order, forecast.shift);
  forecast.theorem_1_s = simulate_zebra(forecast.times, theorem_1, forecast.shift).time_s;
  forecast.unshifted_s = simulate_zebra(forecast.times, theorem_1).time_s;
  forecast.theorem = check_theorem_1(forecast.times, forecast.shift);
  set_forecast(model, std::move(forecast));
}

namespace {

/// By layer with experts.
std::vector<int32_t> shift_of_moe_layers(const PlacedModel& model) {
  std::vector<int32_t> shift;
  const ExpertShift& of = model.plan.shards.expert_shift;
  for (int32_t layer = 0; layer < model.opened->spec.layers; ++layer) {
    if (model.opened->spec.has_experts(layer)) shift.push_back(moved_of(of, layer));
  }
  return shift;
}

Json order_json(const ZebraOrder& order) {
  if (order.empty()) return "theorem 1";
  JsonArray json;
  for (const int32_t number : numbers_of(order)) json.emplace_back(int64_t{number});
  return json;
}

std::string less_text(double before, double after) {
  return fmt::format("{:.1f} % less time", 100 * (1 - after / before));
}

}  // namespace

std::vector<std::string> zebra_lines(const PlacedModel& model) {
  const RankShards& shards = model.plan.shards;
  if (shards.attention_ranks == 0) return {};
  std::vector<std::string> lines;
  lines.push_back(fmt::format("roles: {} attention ranks, {} expert ranks", shards.attention_ranks,
                              shards.ranks - shards.attention_ranks));
  const std::optional<ZebraForecast>& forecast =
      model.zebra ? model.zebra->forecast : std::optional<ZebraForecast>();
  if (const ExpertShift& shift = shards.expert_shift; !is_none(shift)) {
    std::string text;
    for (const int32_t moved : shift_of_moe_layers(model)) text += " " + std::to_string(moved);
    lines.push_back("experts per expert rank that move to attention ranks, by layer:" + text);
    if (forecast) {
      lines.back() += "; simulated: " + less_text(forecast->unshifted_s, forecast->theorem_1_s);
    }
  }
  if (!forecast) return lines;
  lines.push_back(fmt::format(
      "simulated group: attention ranks compute {:.0f} % of the time, expert ranks {:.0f} %",
      100 * forecast->run.attention_s / forecast->run.time_s,
      100 * forecast->run.experts_s / forecast->run.time_s));
  if (forecast->theorem.holds()) {
    lines.emplace_back("Theorem 1 holds: no order of attention and experts is faster");
    return lines;
  }
  for (const std::string& text : forecast->theorem.fails) {
    lines.push_back("Theorem 1 may not hold: " + text);
  }
  lines.push_back(!model.plan.train->zebra_order.empty()
                      ? "another order: " + less_text(forecast->theorem_1_s, forecast->run.time_s)
                      : "its order is taken: no faster one was found");
  return lines;
}

void add_zebra_json(const PlacedModel& model, Json& plan) {
  const RankShards& shards = model.plan.shards;
  if (shards.attention_ranks == 0) return;
  JsonArray roles, shift;
  for (int32_t rank = 0; rank < shards.ranks; ++rank) {
    const char* const role = rank < shards.attention_ranks ? "attention" : "experts";
    roles.emplace_back(JsonObject{{"rank", int64_t{rank}}, {"role", role}});
  }
  for (const int32_t moved : shift_of_moe_layers(model)) shift.emplace_back(int64_t{moved});
  plan["roles"] = std::move(roles);
  plan["expert_shift"] = std::move(shift);
  if (!model.zebra || !model.zebra->forecast) {
    const JsonArray unknown = {"the times of the tasks are not known"};
    plan["theorem_1"] = JsonObject{{"holds", false}, {"fails", unknown}};
    return;
  }
  const ZebraForecast& forecast = *model.zebra->forecast;
  JsonArray fails;
  for (const std::string& text : forecast.theorem.fails) fails.emplace_back(text);
  plan["theorem_1"] = JsonObject{{"holds", forecast.theorem.holds()}, {"fails", std::move(fails)}};
  plan["zebra"] = JsonObject{{"group_s", forecast.run.time_s},
                             {"theorem_1_s", forecast.theorem_1_s},
                             {"unshifted_s", forecast.unshifted_s},
                             {"order", order_json(model.plan.train->zebra_order)},
                             {"attention", forecast.run.attention_s / forecast.run.time_s},
                             {"experts", forecast.run.experts_s / forecast.run.time_s}};
}

}  // namespace hearth
