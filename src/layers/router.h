// The router of a layer: chooses the experts of each token and their weights. Part of the attention
// task.
//
// forward   logits = router(normed); probs = softmax(logits); choice, weight = top-k of probs
// backward  from d_weight and the auxiliary loss's gradient of probs, to the router's weight and
//           d_normed
#pragma once

#include "layers/body.h"

namespace hearth {

/// `saved` is the access to values that forward keeps for backward: write in forward and recompute,
/// read in backward.
void add_router_ports(const TaskShape& s, Access saved, std::vector<Port>& list);
void router_forward(const BodyContext& c);
/// Adds to d_normed.
void router_backward(const BodyContext& c, View d_normed);

}  // namespace hearth
