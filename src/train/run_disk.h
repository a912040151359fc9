// Checks the disk before a run starts.
#pragma once

#include <cstdint>
#include <optional>

#include "budget/placed_model.h"

namespace hearth {

/// Bytes that the run will need on disk: the result, and the most states it keeps at once, less the
/// states already there. `steps`: of the run, if known.
uint64_t disk_needed(const PlacedModel& model, const TrainConfig& config,
                     std::optional<int64_t> steps);
/// Storage error unless the disk of --out has disk_needed bytes free.
void require_disk(const PlacedModel& model, const TrainConfig& config,
                  std::optional<int64_t> steps);

/// Storage error unless the folder of --trace exists. The trace itself is written at the end.
void require_folder_of_trace(const TrainConfig& config);

}  // namespace hearth
