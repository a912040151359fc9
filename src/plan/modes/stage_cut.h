// Cuts a model into stages, one per device: by time, within the memory of each device.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "modes/pipeline.h"
#include "plan/bound.h"

namespace hearth {

/// What cutting depends on. Units are the embedding, the layers, and the head, in this order.
struct StageCutInput {
  std::vector<Place> devices;                // in the order of the stages
  std::vector<std::vector<double>> seconds;  // [device][unit]: of a micro-batch, both directions
  std::vector<uint64_t> bytes;               // [unit]: of its parameters
  std::vector<uint64_t> unit_bytes;          // [device]: for each of its units besides, activations
  std::vector<uint64_t> room;                // [device]: for all of its units
};

/// The cut in which the slowest stage is fastest, of those that fit; of equals, the one whose first
/// stages are shortest. Each stage has a unit at least. If no cut fits, the one whose fullest device
/// is least over its room. Nullopt if there are more devices than units. Pure.
std::optional<std::vector<Stage>> cut_stages(const StageCutInput& input);

/// Floating-point operations of a layer's tasks for one micro-batch, wherever they run. Layer -1 is
/// the embedding, the number of layers the head, whose operations all count as forward.
StageTime layer_flops(const PlanInput& input, int32_t layer, const BatchWork& batch);

}  // namespace hearth
