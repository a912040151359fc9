// Simulates a step of all ranks of a run, message by message. Ranks that run alike still come to a
// collective at different times: one that owns more sends and gets more. The others go on, and wait for it
// in the next collective at the earliest. Pure; no clock.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/rank_links.h"
#include "plan/simulator.h"

namespace hearth {

/// What ranks send each other in a task that talks.
struct Collective {
  Traffic traffic;
  /// By rank: ranks with the same number wait for each other, whether they have bytes for each other or
  /// not. The others have none.
  std::vector<int32_t> group;
  double copies_s = 0;  // that a rank copies in memory, while its links pass messages
};

/// The step of the first rank, and the time of all. Every rank runs this schedule, and takes the seconds of
/// `demands`; of a task that talks, behind its messages. `between_s` does not count. `links`: of each
/// rank's devices, by place. `collectives`: of the tasks that talk, in the order of the schedule.
///
/// A message passes the links between ranks when both ranks have come to its collective, behind all that
/// passed before (BookedLinks). The collective ends at a rank when all messages to and from it have
/// passed, and all ranks of its group have come. So one collective on free links takes RankLinks::busy_s,
/// if all ranks come to it at a time; but for the records of ranks without a message.
SimulatedStep simulate_messages(const Schedule& schedule, std::span<const LinkRates> links,
                                std::span<const TaskDemand> demands,
                                std::span<const Collective> collectives, const RankLinks& between);

}  // namespace hearth
