// What decisions ask the caches to load ahead: the three phases of APTMoE (III-C) as pure functions.
#pragma once

#include <span>
#include <vector>

#include "plan/decisions/split_problem.h"
#include "plan/loader/wants.h"

namespace hearth {

/// A layer of a stage as its loads see it.
struct StageLayer {
  std::vector<BlockId>
      dense;  // attention and router, shared expert or dense MLP; to be loaded first
  std::vector<BlockId> experts;  // by number; empty without routed experts
  std::vector<int32_t> ranking;  // of the experts by history, the most popular first
};

/// Inter-stage: what the next stage shall have. First the dense blocks of all its layers, layer by
/// layer. Then experts rank by rank across layers: the most popular of every layer, the second of
/// every layer, and so on. Ends before the block that would pass `budget` bytes in all. Ranks of
/// wants are their positions. `bytes`: by block, with its adapter.
Wants stage_wants(std::span<const StageLayer> layers, std::span<const size_t> bytes, size_t budget,
                  bool with_gradient);

/// When a stage is entered: what was asked for it by stage and is still queued is asked for no more,
/// since decisions with better counts begin (III-C 2).
std::vector<BlockId> stage_drops(const Wants& asked, std::span<const Where> where);

/// Inter-layer and inter-expert: a split of predicted or of real tokens wants what it gives to the
/// device, in the order of computing. Experts that are queued and not on the device are dropped,
/// whoever asked for them. Decided again with better counts, the later wants hold. `experts`: the
/// blocks of the layer's experts by number; `states` of the pass that the wants are for.
Wants split_wants(const ExpertSplit& split, std::span<const BlockId> experts,
                  std::span<const ExpertState> states, Priority priority, bool with_gradient);

}  // namespace hearth
