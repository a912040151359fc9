// When something is due that a run does again and again: a save, an evaluation.
#pragma once

#include <cstdint>

#include "setup/config.h"

namespace hearth {

/// After `step`, the last of an epoch or not, with `seconds` since the last time.
inline bool is_due(const Interval& every, int64_t step, bool ended_epoch, double seconds) {
  const bool by_steps = every.steps && *every.steps > 0 && step % *every.steps == 0;
  const bool by_time = every.seconds && seconds >= *every.seconds;
  return by_steps || by_time || (every.epoch && ended_epoch);
}

}  // namespace hearth
