// How many stages each device has: the interleaved pipelines of Megatron-LM (Narayanan et al., SC 2021,
// section 2.2).
#pragma once

#include <cstdint>
#include <vector>

#include "budget/plan.h"

namespace hearth {

/// The numbers of stages on each device with which the passes of a step end earlier than with
/// `fewest` on each: the most first. Each number doubles the one before, shortens the step by a twentieth
/// at least, and leaves two layers to a stage on average, since each passes its tokens on. By the times
/// of the cuts without limits of memory, and without copies. `group`: micro-batches that go through
/// together. Empty: no number is better, or the request has a cut. Pure.
std::vector<int32_t> interleavings(const PlanSubject& subject, const PlanRequest& request,
                                   int32_t fewest, int64_t group);

/// The devices of so many stages each, in the order of the stages.
std::vector<Place> interleaved(const std::vector<Place>& devices, int32_t stages_each);

}  // namespace hearth
