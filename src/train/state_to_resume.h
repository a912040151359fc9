// What a start needs to know of the state that it will resume, before the run is planned.
#pragma once

#include <optional>

#include "setup/config.h"
#include "state/saved_state.h"

namespace hearth {

/// The state that the run would resume, with its manifest alone; nullopt: none. States that cannot be
/// read are skipped: the run tells of them when it chooses its state.
std::optional<SavedState> state_to_resume(const TrainConfig& config);

}  // namespace hearth
