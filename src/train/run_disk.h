// What a run needs of the disk before it starts.
#pragma once

#include <cstdint>
#include <optional>

#include "budget/placed_model.h"

namespace hearth {

/// Bytes on the disk that the run will write: the result, and as many states as it may have at once
/// beyond those that are there. `steps` of the run, if known.
uint64_t disk_needed(const PlacedModel& model, const TrainConfig& config,
                     std::optional<int64_t> steps);
/// Storage error unless the disk of --out has them.
void require_disk(const PlacedModel& model, const TrainConfig& config,
                  std::optional<int64_t> steps);

/// Storage error unless the folder that --trace names is there: it is written at the end.
void require_folder_of_trace(const TrainConfig& config);

}  // namespace hearth
