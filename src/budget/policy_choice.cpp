#include "budget/policy_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "budget/decided_splits.h"
#include "budget/placement_report.h"
#include "budget/recompute_choice.h"
#include "budget/shortage.h"

namespace hearth {

namespace {

/// In the order in which equal ones count.
constexpr std::array<const char*, 4> kNames = {kStatic, kMakespan, kAptmoe, kMobius};

/// Ranks divide a step among them, each with all of the model.
bool has_choice(const OpenedModel& opened, const PlanRequest& request) {
  const ModelPlaces& places = opened.devices.of_model;
  return request.training && request.shards.ranks == 1 && places.policy == "auto" && places.hot;
}

ModelPlaces places_under(const std::string& name, ModelPlaces places) {
  if (name == kStatic) return places;
  places.hot = false;
  places.travel = Travel::ahead;
  places.experts.clear();
  if (name == kMobius) return places;
  places.experts = {kHostPlace};
  places.divide = name == kMakespan ? DivideBy::makespan : DivideBy::equation_1;
  return places;
}

struct Tried {
  ChosenPolicy policy;
  uint64_t lacks = 0;
  std::optional<double> time_s;
  std::string popularity;  // of experts, in the prediction
};

Tried try_policy(const char* name, const TrainedModel& model, const PlanRequest& request,
                 const StepWork& work, const RunTables& tables) {
  const ModelPlaces places = places_under(name, model.opened->devices.of_model);
  Tried tried{{places, name, {}}, 0, {}, {}};
  const PlacedModel placed = place_fastest(model, request, work, tables, tried.policy);
  tried.lacks = shortage(placed.plan);
  if (!placed.plan.fits()) return tried;
  const PlanTimes times = predict(placed, work, std::nullopt);
  if (times.known) tried.time_s = times.step.time_s;
  tried.popularity = times.popularity;
  return tried;
}

ChosenPolicy chosen(const std::vector<Tried>& all, const Tried& best) {
  ChosenPolicy policy = best.policy;
  for (const Tried& tried : all) {
    policy.candidates.push_back({tried.policy.name, tried.lacks == 0, tried.time_s});
  }
  return policy;
}

}  // namespace

PolicyOutlook policy_outlook(const TrainedModel& model, const PlanRequest& request,
                             RunTables& tables) {
  if (!has_choice(*model.opened, request)) return {};
  const auto stays = [&](const char* why) {
    return PolicyOutlook{ChosenPolicy{model.opened->devices.of_model, kStatic, why}};
  };
  if (model.opened->devices.of_model.dense.size() == 1) {  // several may wait for each other
    const PlacedModel held = place_model(model, request);
    if (held.plan.fits() && holds_all_experts(held)) {
      return stays("all experts fit on the device");
    }
  }
  {
    const PlacedModel held = measured_model(model, request, Rates::measured, tables);
    tables = held.tables;
    if (!knows_expert_times(held, request.training)) {
      return stays("there are no cost tables to compare by; 'hearth profile' makes them");
    }
  }
  return {std::nullopt, true};
}

bool any_policy_fits(const TrainedModel& model, const PlanRequest& request) {
  return std::ranges::any_of(kNames, [&](const char* name) {
    const ModelPlaces places = places_under(name, model.opened->devices.of_model);
    return place_model(model, request, Rates::none, {}, ChosenPolicy{places, name, {}}).plan.fits();
  });
}

ChosenPolicy compare_policies(const TrainedModel& model, const PlanRequest& request,
                              const StepWork& work, const RunTables& tables) {
  std::vector<Tried> all;
  for (const char* name : kNames) {
    all.push_back(try_policy(name, model, request, work, tables));
  }
  const bool any = std::ranges::any_of(all, [](const Tried& of) { return of.time_s.has_value(); });
  if (!any) {
    const Tried& least = *std::ranges::min_element(all, {}, &Tried::lacks);
    ChosenPolicy policy = chosen(all, least);
    policy.why = least.lacks > 0 ? "no policy fits; this one lacks the least memory"
                                 : "the times of steps are not known";
    return policy;
  }
  double fastest = 0;
  for (const Tried& of : all) {
    if (of.time_s && (fastest == 0 || *of.time_s < fastest)) fastest = *of.time_s;
  }
  const Tried& best = *std::ranges::find_if(
      all, [&](const Tried& of) { return of.time_s && *of.time_s <= (1 + kEqualTimes) * fastest; });
  ChosenPolicy policy = chosen(all, best);
  policy.why = "its step is predicted to take the least time, with " + best.popularity;
  return policy;
}

std::optional<ChosenPolicy> choose_policy(const TrainedModel& model, const PlanRequest& request,
                                          const StepWork& work, RunTables& tables) {
  const PolicyOutlook outlook = policy_outlook(model, request, tables);
  return outlook.must_compare ? compare_policies(model, request, work, tables) : outlook.policy;
}

std::optional<ChosenPolicy> policy_named(const std::string& name, const OpenedModel& opened,
                                         const PlanRequest& request, const std::string& why) {
  if (!has_choice(opened, request)) return std::nullopt;
  if (std::ranges::find(kNames, name) == kNames.end()) return std::nullopt;
  return ChosenPolicy{places_under(name, opened.devices.of_model), name, why};
}

std::string policy_line(const PlacedModel& model) {
  if (!model.policy) return {};
  const ChosenPolicy& policy = *model.policy;
  std::string line = "policy auto: " + policy.name + ", since " + policy.why;
  if (model.of_model.divides_experts()) line += ", and may divide an expert along its width";
  std::string others;
  for (const ChosenPolicy::Candidate& of : policy.candidates) {
    others += (others.empty() ? "" : ", ") + of.name + ' ';
    others += of.time_s ? fmt::format("{:.4g} s", *of.time_s)
              : of.fits ? std::string("of unknown time")
                        : std::string("does not fit");
  }
  return others.empty() ? line : line + " (" + others + ")";
}

Json policy_json(const PlacedModel& model) {
  if (!model.policy) return nullptr;
  JsonArray candidates;
  for (const ChosenPolicy::Candidate& of : model.policy->candidates) {
    candidates.push_back(JsonObject{{"policy", of.name},
                                    {"fits", of.fits},
                                    {"time_s", of.time_s ? Json(*of.time_s) : Json(nullptr)}});
  }
  return JsonObject{{"became", model.policy->name},
                    {"why", model.policy->why},
                    {"candidates", std::move(candidates)}};
}

}  // namespace hearth
