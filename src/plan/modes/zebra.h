// The planner `zebra`: some ranks compute attention, the others experts (HeterMoE, arXiv 2504.03871).
#pragma once

#include "modes/planner.h"

namespace hearth {

/// The order of Theorem 1 of the paper, for the micro-batches of a group: in each layer, attention of
/// all of them, one after the other, while the experts compute those before; at the last layer forward
/// and backward of a micro-batch in turn; then backward, layer by layer, in the same order. Or another
/// order (PlanInput::zebra_order). Ranks with experts follow. Every rank issues the same exchanges.
/// Experts of attention ranks are computed behind the attention of their layer.
const Planner& zebra_planner();

}  // namespace hearth
