// Identifies a run, for its saved states and for the check at a resume.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "budget/placed_model.h"
#include "state/run_identity.h"
#include "state/saved_state.h"

namespace hearth {

/// The identity of a run: its options, the content of its model and data, and resolved choices.
RunIdentity identity_of_run(const TrainConfig& config, const PlacedModel& model,
                            const std::vector<std::pair<std::string, Digest>>& data,
                            const std::vector<std::pair<std::string, Digest>>& eval_data);

/// The run's promise of bit-exactness: {"level": "replay-exact", "changes": [...]}. Each change
/// names the step after which it applied. `from`: the state that the run resumes, or null.
Json determinism_record(const SavedState* from, const std::vector<IdentityChange>& changes);

/// Input error that names the file, unless the checkpoint has the content that the run trained.
void require_same_model(const SavedState& state, const Checkpoint& base);

}  // namespace hearth
