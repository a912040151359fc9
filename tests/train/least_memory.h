// The least memory that the devices of a run need.
#pragma once

#include <cstdint>
#include <vector>

#include "base/pool.h"
#include "budget/needed_memory.h"
#include "train/planned_run.h"
#include "train/training_fixture.h"

namespace hearth::test {

/// Of each device of a list of devices that are all too small, beside whose host experts may be: what
/// it needs without any expert of the host's.
inline std::vector<uint64_t> least_device_memory(const TrainConfig& config) {
  unbind_thread();
  RecordingReporter reporter;
  const PlannedRun run(config, open_model(config), reporter);
  const std::vector<uint64_t> needed = needed_memory(subject_of(run.model), run.request);
  return {needed.begin() + run.opened->devices.hosts, needed.end()};
}

}  // namespace hearth::test
