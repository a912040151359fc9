// What each rank knows of a step after it, joined on all ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/rank_team.h"

namespace hearth {

/// Losses of a micro-batch, before they are weighted.
struct MicroLosses {
  double loss = 0, aux_loss = 0, z_loss = 0;
};

/// Of the micro-batches of one rank. All ranks have equally many, and the same experts.
struct StepPart {
  std::vector<MicroLosses> losses;
  std::vector<std::vector<double>> expert_tokens;  // [MoE layer][expert]
  double tokens = 0;
  double time_s = 0, wait_s = 0;  // of the step; of these, waiting for other ranks
  int signal = 0;                 // that asked the rank to stop; joined, of any rank; 0: none
  const World* between_devices =
      nullptr;  // counts bytes, too (comm/device_world.h); null: there is none
};

/// A rank's step, for metrics.
struct RankStep {
  int32_t rank = 0;
  std::string host;
  double time_s = 0, wait_s = 0;
  int64_t tokens = 0;
  std::vector<int64_t> sent_bytes;  // since the start, by receiving rank, on whatever way
};

/// Joins the parts: losses in the order of the step's micro-batches, tokens of experts added. One
/// operation of all ranks. Raises PeerError.
std::vector<RankStep> join_parts(RankTeam& team, StepPart& part);

}  // namespace hearth
