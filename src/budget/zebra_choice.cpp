#include "budget/zebra_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/counted.h"
#include "base/error_format.h"
#include "base/number_list.h"
#include "base/setting.h"
#include "budget/ep_beside.h"
#include "budget/placement_plan.h"
#include "budget/plan_fit.h"
#include "budget/role_times.h"
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

std::shared_ptr<const ZebraRoles> roles_of(const PlacedModel& model, const PlanRequest& request,
                                           std::vector<RankSpeed> speeds) {
  auto roles = std::make_shared<ZebraRoles>();
  const PlanRequest of = of_experts(request, *model.plan.train);
  ParameterTable table = model.table;
  own_blocks(table, of.shards);
  PlacementPlan planned = plan_placement(subject_of(model).with_table(table), of);
  roles->plan = std::move(planned.plan);
  roles->table = std::move(planned.table);
  roles->speeds = std::move(speeds);
  return roles;
}

bool knows_times(const PlacedModel& model, const StepWork& work) {
  return model.rates && knows_described_times(model) && !work.batches.empty();
}

bool is_none(const ExpertShift& shift) {
  return std::ranges::all_of(shift, [](int32_t moved) { return moved == 0; });
}

/// By layer with experts.
std::vector<int32_t> shift_of_moe_layers(const PlacedModel& model, const ExpertShift& of) {
  std::vector<int32_t> shift;
  for (int32_t layer = 0; layer < model.opened->spec.layers; ++layer) {
    if (model.opened->spec.has_experts(layer)) shift.push_back(moved_of(of, layer));
  }
  return shift;
}

/// With the roles of that plan.
PlacedModel planned_again(PlacedModel model, const PlanRequest& request) {
  model = replanned(std::move(model), request);
  model.zebra = roles_of(model, request, model.zebra->speeds);
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

/// Which layers have experts, with times that mean nothing.
ZebraTimes shape_of(const PlacedModel& model) {
  const RankShards& shards = model.plan.shards;
  const ModelSpec& spec = model.opened->spec;
  ZebraTimes shape{shards.attention_of_group(),
                   shards.experts_of_group(),
                   static_cast<int32_t>(spec.experts),
                   {},
                   {}};
  shape.layers.resize(static_cast<size_t>(spec.layers));
  for (int32_t layer = 0; layer < spec.layers; ++layer) {
    if (spec.has_experts(layer)) shape.layers[static_cast<size_t>(layer)].expert_there = {1, 1};
  }
  return shape;
}

/// The option, for messages.
std::string spelled_shift(const PlacedModel& model, const ExpertShift& shift) {
  const std::vector<int32_t> numbers = shift_of_moe_layers(model, shift);
  return spelled(Setting::expert_shift, is_none(numbers) ? "off" : numbers_text(numbers));
}

/// What ranks lack with a shift.
RolesLack lack_with(const PlacedModel& model, PlanRequest request, const ExpertShift& shift,
                    const LackOfRoles& others) {
  const bool is_planned =
      model.plan.shards.expert_shift == shift && model.plan.train->zebra_order.empty();
  request.shards.expert_shift = shift;
  request.zebra_order.clear();
  const PlacedModel planned = is_planned ? model : replanned(model, request);
  RolesLack lack = others ? others(planned) : RolesLack{};
  if (!planned.plan.fits()) lack.attention = "rank 0: " + what_is_missing(planned.plan);
  return lack;
}

/// Usage error if ranks lack memory with the shift that the user gave, and would not with another one.
void require_room(const PlacedModel& model, const PlanRequest& request, const LackOfRoles& others) {
  const ExpertShift& shift = request.shards.expert_shift;
  const auto lack_of = [&](const ExpertShift& of) { return lack_with(model, request, of, others); };
  const RolesLack lack = lack_of(shift);
  if (lack.nothing()) return;
  const ZebraTimes shape = shape_of(model);
  const ShiftChunk chunk = shift_chunk(shape.attention_ranks, shape.expert_ranks);
  const ShiftBounds room = room_for_shift(shape, lack_of);
  const int64_t most = room.most_taken / chunk.taken;
  const int64_t least = room.least_moved / (int64_t{chunk.given} * shape.expert_ranks);
  if (least > most) return;
  const bool too_many = !lack.attention.empty();
  if (too_many ? is_none(shift) || !lack_of({}).attention.empty() : least == 0) return;
  const std::string would_do = spelled_shift(model, even_shift(shape, too_many ? most : least));
  const std::string given = spelled_shift(model, shift);
  if (too_many) {
    throw usage_error(
        "{}: {}; attention ranks have room for {} of all layers each, not for {}; {} would do",
        given, lack.attention, counted(room.most_taken, "expert"),
        chunk.taken * std::accumulate(shift.begin(), shift.end(), int64_t{0}) / chunk.given,
        would_do);
  }
  throw usage_error(
      "{}: {}; at least {} experts of all layers must move to attention ranks; {} "
      "would do",
      given, lack.experts, room.least_moved, would_do);
}

/// The fastest shift with which no rank lacks memory, if there is one.
ExpertShift shift_that_fits(const PlacedModel& model, const PlanRequest& request,
                            const ZebraForecast& forecast, const LackOfRoles& others) {
  const auto chosen = [&](const ShiftBounds& bounds) {
    return choose_expert_shift(forecast.times, forecast.micro_batches, bounds).shift;
  };
  const auto lack_of = [&](const ExpertShift& of) { return lack_with(model, request, of, others); };
  ExpertShift shift = chosen({});
  if (lack_of(shift).nothing()) return shift;
  ShiftBounds room = room_for_shift(forecast.times, lack_of);
  const ShiftChunk chunk = shift_chunk(forecast.times.attention_ranks, forecast.times.expert_ranks);
  const int64_t least = room.least_moved / chunk.given / forecast.times.expert_ranks * chunk.taken;
  shift = chosen(room);
  // Layers may differ in what they need, so an uneven shift may need more than an even one.
  while (room.most_taken > least && !lack_of(shift).attention.empty()) {
    room.most_taken -= chunk.taken;
    shift = chosen(room);
  }
  return shift;
}

}  // namespace

void choose_zebra(PlacedModel& model, PlanRequest& request, const StepWork& work,
                  const TrainConfig& config, const OtherRanks& others) {
  if (request.shards.attention_ranks == 0 || !model.plan.train) return;
  if (!model.plan.fits()) {
    if (config.expert_shift) require_room(model, request, others.lack);
    return;
  }
  const PlanRequest asked = request;
  const PlanRequest scheduled = request.scheduled_as(*model.plan.train);
  if (config.expert_shift) require_room(model, scheduled, others.lack);
  model.zebra = roles_of(model, request, others.speeds);
  if (config.zebra_order && !config.zebra_order->empty()) take_order(model, request, config);
  if (!knows_times(model, work)) return;
  ZebraForecast forecast;
  forecast.times = zebra_times(model, *model.zebra, work);
  forecast.micro_batches = static_cast<int32_t>(model.plan.train->group);
  forecast.shift = request.shards.expert_shift;
  forecast.faster_expert_rank = faster_expert_rank(model, *model.zebra, work);
  if (!config.expert_shift) {
    forecast.shift = shift_that_fits(model, scheduled, forecast, others.lack);
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
  forecast.ep = ep_beside(model, asked, work);
  set_forecast(model, std::move(forecast));
}

namespace {

Json order_json(const ZebraOrder& order) {
  if (order.empty()) return "theorem 1";
  JsonArray json;
  for (const int32_t number : numbers_of(order)) json.emplace_back(int64_t{number});
  return json;
}

/// "rank 2 (virtual:0)". Empty: all ranks count as rank 0.
std::string tables_of_ranks(const ZebraRoles& roles) {
  std::string text;
  for (const RankSpeed& speed : roles.speeds) {
    if (!speed.costs.table) continue;
    text += (text.empty() ? "" : ", ") + fmt::format("rank {} ({})", speed.rank, speed.place);
  }
  return text;
}

JsonArray tables_json(const ZebraRoles& roles) {
  JsonArray ranks;
  for (const RankSpeed& speed : roles.speeds) {
    if (!speed.costs.table) continue;
    ranks.emplace_back(JsonObject{{"rank", int64_t{speed.rank}},
                                  {"place", speed.place},
                                  {"digest", speed.costs.table->digest().hex()}});
  }
  return ranks;
}

/// By how much ep must be faster to be said so.
constexpr double kFasterEp = 0.01;

/// `zebra_s`: of a step as planned.
std::string ep_line(const PlacedModel& model, const EpBeside& ep, double zebra_s) {
  std::string text = spelled(Setting::parallel, "ep");
  if (ep.shards != model.plan.shards.shards) {
    text += " " + spelled(Setting::logical_shards, std::to_string(ep.shards));
  }
  const bool faster = ep.step_s < zebra_s * (1 - kFasterEp);
  return fmt::format("{} {} on these ranks, simulated: {:.3g} s per step instead of {:.3g} s", text,
                     faster ? "would be faster" : "would not be faster", ep.step_s, zebra_s);
}

std::string less_text(double before, double after) {
  return fmt::format("{:.1f} % less time", 100 * (1 - after / before));
}

}  // namespace

std::string role_of(const RankShards& shards, int32_t rank) {
  if (shards.attention_ranks == 0) return {};
  return rank < shards.attention_ranks ? "attention" : "experts";
}

std::vector<std::string> zebra_lines(const PlacedModel& model, const PlanTimes& times) {
  const RankShards& shards = model.plan.shards;
  if (shards.attention_ranks == 0) return {};
  std::vector<std::string> lines;
  lines.push_back(fmt::format("roles: {} attention ranks, {} expert ranks", shards.attention_ranks,
                              shards.ranks - shards.attention_ranks));
  if (shards.groups() > 1) {
    lines.back() += fmt::format(", in {} groups that have all experts each", shards.groups());
  }
  const std::optional<ZebraForecast>& forecast =
      model.zebra ? model.zebra->forecast : std::optional<ZebraForecast>();
  if (const ExpertShift& shift = shards.expert_shift; !is_none(shift)) {
    std::string text;
    for (const int32_t moved : shift_of_moe_layers(model, shift)) {
      text += " " + std::to_string(moved);
    }
    lines.push_back("experts per expert rank that move to attention ranks, by layer:" + text);
    if (forecast) {
      lines.back() += "; simulated: " + less_text(forecast->unshifted_s, forecast->theorem_1_s);
    }
  }
  if (!forecast) return lines;
  if (const std::string tables = tables_of_ranks(*model.zebra); !tables.empty()) {
    lines.push_back("ranks by cost tables of their own: " + tables +
                    "; the slowest of a role counts");
  }
  lines.push_back(fmt::format(
      "simulated group: attention ranks compute {:.0f} % of the time, expert ranks {:.0f} %",
      100 * forecast->run.attention_s / forecast->run.time_s,
      100 * forecast->run.experts_s / forecast->run.time_s));
  if (forecast->ep) lines.push_back(ep_line(model, *forecast->ep, times.step.time_s));
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
    roles.emplace_back(JsonObject{{"rank", int64_t{rank}}, {"role", role_of(shards, rank)}});
  }
  for (const int32_t moved : shift_of_moe_layers(model, shards.expert_shift)) {
    shift.emplace_back(int64_t{moved});
  }
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
  const std::optional<EpBeside>& ep = forecast.ep;
  plan["zebra"] = JsonObject{{"group_s", forecast.run.time_s},
                             {"theorem_1_s", forecast.theorem_1_s},
                             {"unshifted_s", forecast.unshifted_s},
                             {"ep_s", ep ? Json(ep->step_s) : Json()},
                             {"order", order_json(model.plan.train->zebra_order)},
                             {"rank_costs", tables_json(*model.zebra)},
                             {"attention", forecast.run.attention_s / forecast.run.time_s},
                             {"experts", forecast.run.experts_s / forecast.run.time_s}};
}

}  // namespace hearth
