// Which expert domains a run with `hybrid-ep` has (comm/expert_domains.h), and what they move.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "budget/placed_model.h"
#include "budget/plan_time.h"

namespace hearth {

/// The share of the simulated time that larger domains must save to be taken.
inline constexpr double kDomainGain = 1e-3;

/// Of a run with `hybrid-ep`: plans each choice of domains for its levels, and takes the one whose
/// simulated step is shortest among those that fit. Smaller domains stay unless larger ones save
/// kDomainGain. If `model` does not fit, or no times are known, the smallest that fit are taken.
/// With `fetches`, domains that do not fit may fetch experts (budget/fetched_layers.h).
/// Afterwards `request` is what was planned. Of other runs nothing changes.
void choose_domains(PlacedModel& model, PlanRequest& request, const StepWork& work, bool fetches);

/// Bytes of a step that a mean rank sends to others for routed experts.
struct DomainVolumes {
  double experts = 0;    // weights, from owners to all that compute with them
  double gradients = 0;  // to owners
  double tokens = 0;     // rows and their gradients, to experts and back
};
/// Of a step of so many tokens of all ranks. Every expert is taken to get equally many of them.
DomainVolumes domain_volumes(const PlacedModel& model, double tokens);

/// "domains of 1,2 on levels of 2,2".
std::string domains_text(const RankShards& shards);
/// For people: the domains and what the others would take, one line each. Empty: no `hybrid-ep`.
std::vector<std::string> domain_lines(const PlacedModel& model);
/// For people: that weights of experts travel compressed. Empty: they do not.
std::string wire_line(const PlacedModel& model);
/// "levels", "domains", "p", "volumes", "wire" and "domain_choice" of the plan. `tokens`: of a step.
void add_domains_json(const PlacedModel& model, double tokens, Json& plan);

}  // namespace hearth
