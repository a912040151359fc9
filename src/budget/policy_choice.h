// What `--policy auto` becomes where devices and the host may both compute experts.
#pragma once

#include "budget/placed_model.h"
#include "budget/plan_time.h"

namespace hearth {

/// The names of policies that `auto` may become.
inline constexpr const char* kStatic = "static";      // hot experts live on devices
inline constexpr const char* kMakespan = "makespan";  // tokens divide experts whose weights travel
inline constexpr const char* kAptmoe = "aptmoe";      // the same by Equation 1
inline constexpr const char* kMobius = "mobius";      // all experts travel to the devices

/// Times of steps that differ by no more than this share count as equal.
inline constexpr double kEqualTimes = 0.01;

/// What is known of the choice before policies are compared.
struct PolicyOutlook {
  /// What `auto` becomes if nothing has to be compared: all experts fit on the only device beside the
  /// rest, and live there, or there are no times to compare by. None: there is no choice, since the
  /// options name a policy, or no device beside the host; or policies have to be compared.
  std::optional<ChosenPolicy> policy;
  bool must_compare = false;
};
/// `tables`: those that are known; afterwards also those that were measured.
PolicyOutlook policy_outlook(const TrainedModel& model, const PlanRequest& request,
                             RunTables& tables);
/// Whether any of the policies fits. Measures nothing.
bool any_policy_fits(const TrainedModel& model, const PlanRequest& request);

/// Plans the model under each policy, and takes the one whose step is predicted to be the shortest;
/// of equal ones the first in the order above. A policy that does not fit is no candidate; if none
/// fits, the one that lacks the least memory is taken. Experts are as popular as the model and the
/// routing of the work say; with neither, all equally.
ChosenPolicy compare_policies(const TrainedModel& model, const PlanRequest& request,
                              const StepWork& work, const RunTables& tables);
/// Both.
std::optional<ChosenPolicy> choose_policy(const TrainedModel& model, const PlanRequest& request,
                                          const StepWork& work, RunTables& tables);

/// The policy of this name, for runs whose choice was made before. None: not one of these, or there
/// is no choice.
std::optional<ChosenPolicy> policy_named(const std::string& name, const OpenedModel& opened,
                                         const PlanRequest& request, const std::string& why);

/// "policy auto: makespan, ...". Empty: there was no choice.
std::string policy_line(const PlacedModel& model);
/// {"became", "why", "candidates": [{"policy", "fits", "time_s"}]}, or null.
Json policy_json(const PlacedModel& model);

}  // namespace hearth
