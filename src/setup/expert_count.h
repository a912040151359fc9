// How many experts of a layer --experts top:P% selects, before it is known which.
#pragma once

#include <cstdint>

#include "model/adapters.h"
#include "model/spec.h"

namespace hearth {

/// ceil(percent of `experts`), at least 1.
int64_t chosen_experts(int64_t experts, double percent);

/// The first `chosen_experts` of each MoE layer. A plan sizes adapters by this choice while the real
/// one is not known yet.
ExpertChoice placeholder_experts(const ModelSpec& spec, double percent);

}  // namespace hearth
