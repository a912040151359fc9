// The gate of a layer: which experts a token goes to, with which weight. Part of A.
//
// forward   logits = router(normed); probs = softmax(logits); choice, weight = top-k of probs
// backward  from d_weight, and the auxiliary loss' gradient of probs, to the router and d_normed
#pragma once

#include "layers/body.h"

namespace hearth {

/// `saved`: write in forward and recompute, read in backward.
void add_gate_ports(const TaskShape& s, Access saved, std::vector<Port>& list);
void gate_forward(const BodyContext& c);
/// Adds to d_normed.
void gate_backward(const BodyContext& c, View d_normed);

}  // namespace hearth
