// The planner `single`: one device and the host, one step after the other.
#pragma once

#include "modes/planner.h"

namespace hearth {

/// Tasks run where their blocks are. A training step is layer-major: each micro-batch of a group
/// passes a layer before any of them enters the next. Every task reads the weights of its layer, so
/// a layer's weights are used by consecutive tasks. Activations grow with the group.
const Planner& single_planner();
/// `dp`: the same on every rank, each with the micro-batches of its logical shards.
const Planner& dp_planner();
/// `ep`: as `dp`, but neighbouring ranks share the routed experts (RankShards::expert_ranks).
const Planner& ep_planner();
/// `hybrid-ep`: as `ep`, but the ranks of an expert domain have the same experts (RankShards::levels).
const Planner& hybrid_ep_planner();

}  // namespace hearth
