// Zebra's two roles: what they take, and what the plan chooses for them, which is experts that move to
// attention ranks, and the order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "budget/placed_model.h"
#include "budget/plan_time.h"
#include "budget/shift_room.h"

namespace hearth {

/// What is known of the ranks besides rank 0.
struct OtherRanks {
  std::vector<RankSpeed> speeds;  // ZebraRoles::speeds
  LackOfRoles lack = {};          // null: their memory is not known
};

/// Of a run with zebra: plans the first expert rank, and predicts a group. Unless the options have a
/// shift, moves experts where that saves simulated time, as far as there is memory for them. Unless the
/// plan file has an order, takes another one than that of Theorem 1 if its simulated time is less. Where
/// either changes something, plans again with it, unless that does not fit. Afterwards `request` is what
/// was planned. Of other runs nothing changes. Usage error with the numbers if the ranks have no room for
/// the shift of the options but for another one, or for no shift at all; if the plan file's order is none.
void choose_zebra(PlacedModel& model, PlanRequest& request, const StepWork& work,
                  const TrainConfig& config, const OtherRanks& others);

/// "attention" or "experts"; empty: no zebra.
std::string role_of(const RankShards& shards, int32_t rank);

/// For people: the shift, the order and the theorem, one line each. Empty: no zebra. `times`: of this
/// plan.
std::vector<std::string> zebra_lines(const PlacedModel& model, const PlanTimes& times);
/// "roles", "expert_shift" and "theorem_1" of the plan.
void add_zebra_json(const PlacedModel& model, Json& plan);

}  // namespace hearth
