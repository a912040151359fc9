// The counters of a run and its position in the data: the component "progress" of saved state.
#pragma once

#include <cstdint>

#include "base/state_registry.h"
#include "data/samples/sampler.h"

namespace hearth {

struct Progress {
  int64_t step = 0;     // completed steps, skipped steps included
  int64_t updates = 0;  // steps that changed weights (AdamW's step count)
  int64_t tokens = 0;
  int64_t trained_tokens = 0;
  int64_t skipped = 0;  // steps with a non-finite loss or gradient
  int64_t skipped_in_a_row = 0;
  SamplerCursor cursor;  // where the next step's data starts
};

/// Loading also moves the sampler to the cursor. Storage error for inconsistent counters.
void register_progress(StateRegistry& registry, Progress& progress, Sampler& sampler);

}  // namespace hearth
