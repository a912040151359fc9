// The simulated step of several ranks that have different schedules: a collective begins when all ranks
// have come to it. Pure; no clock.
#pragma once

#include <span>
#include <vector>

#include "plan/simulator.h"

namespace hearth {

/// What a rank runs. Does not own the schedule.
struct RankSchedule {
  const Schedule* schedule = nullptr;
  std::vector<TaskDemand> demands;  // by task; of places without links
};

/// By rank. Ranks issue the same collectives, in the same order on each stream: std::logic_error if they
/// do not, or if tasks wait for each other forever. A collective takes what the first rank's demand says.
std::vector<SimulatedStep> simulate_ranks(std::span<const RankSchedule> ranks);

}  // namespace hearth
