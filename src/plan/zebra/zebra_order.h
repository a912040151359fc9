// The order of a step with zebra: attention and experts of the micro-batches of a group. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "layers/body.h"

namespace hearth {

/// A stage of the attention ranks, or the experts of a layer, for one micro-batch of each attention
/// rank (plan/zebra/zebra_times.h).
struct ZebraTask {
  bool experts = false;
  Phase phase = Phase::forward;
  int32_t at = 0;  // the stage, or the layer of the experts
  int32_t micro_batch = 0;
  friend auto operator<=>(const ZebraTask&, const ZebraTask&) = default;
};

/// All tasks of a group, each once. Attention ranks compute attention in this order, expert ranks
/// experts; experts of attention ranks are computed where they stand between attention. Rows leave in
/// the order of attention, and come back in that of experts.
using ZebraOrder = std::vector<ZebraTask>;

/// Theorem 1 of the paper: layer by layer; at the last stage forward and backward in turn.
ZebraOrder theorem_1_order(int32_t layers, int32_t micro_batches);

/// Whether each task comes behind those that it depends on, and the micro-batches of a stage, or of a
/// layer's experts, are in order within a phase. Gradients are added in that order, so such orders
/// have the same bits.
bool is_zebra_order(const ZebraOrder& order, int32_t layers, int32_t micro_batches);

/// For files and messages: four numbers a task. Anything else gives an order that is none.
std::vector<int32_t> numbers_of(const ZebraOrder& order);
ZebraOrder order_of(std::span<const int32_t> numbers);

}  // namespace hearth
