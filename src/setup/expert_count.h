// How many experts per layer --experts top:P% selects.
#pragma once

#include <cstdint>

#include "model/adapters.h"
#include "model/spec.h"

namespace hearth {

/// ceil(percent of `experts`), at least 1.
int64_t chosen_experts(int64_t experts, double percent);

/// The first `chosen_experts` experts of each MoE layer. A plan uses it to size adapters before the
/// real choice is known.
ExpertChoice placeholder_experts(const ModelSpec& spec, double percent);

}  // namespace hearth
