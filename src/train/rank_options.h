// Options of several ranks: what goes together, and what follows from them.
#pragma once

#include "model/spec.h"
#include "setup/config.h"
#include "setup/run_devices.h"

namespace hearth {

/// Usage error unless logical shards divide the micro-batches of a step, ranks divide the shards,
/// several ranks have a mode for them, and this version has these devices for them.
void require_ranks(const TrainConfig& config, const RunDevices& devices);

/// Usage error unless each layer has an expert for each of the ranks that share them.
void require_expert_ranks(const TrainConfig& config, const ModelSpec& spec);

/// With the devices of a rank: those of `rank_devices`, if they name it. Afterwards they name all ranks.
/// Usage error if they name a rank that is not there.
TrainConfig with_devices_of_rank(TrainConfig config, int32_t rank);
/// Usage error unless the experts that are to move can move, or if there is no zebra.
void require_expert_shift(const TrainConfig& config, const ModelSpec& spec);
/// By layer: RankShards::expert_shift. Empty if none moves, or if the plan chooses.
std::vector<int32_t> expert_shift_of(const TrainConfig& config, const ModelSpec& spec);

/// Ranks of one process, or on the same CPUs, share the cores, unless the user set the workers of each.
TrainConfig with_shared_cores(TrainConfig config);

}  // namespace hearth
