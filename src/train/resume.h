// What identifies this run, for its saved states and for the comparison with one that it resumes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "budget/placed_model.h"
#include "state/run_identity.h"
#include "state/saved_state.h"

namespace hearth {

/// The identity of a run: its options, the content of its model and data, and what was resolved.
RunIdentity identity_of_run(const TrainConfig& config, const PlacedModel& model,
                            const std::vector<std::pair<std::string, Digest>>& data,
                            const std::vector<std::pair<std::string, Digest>>& eval_data);

/// What a run promises about its bits: {"level": "replay-exact", "changes": [...]}. Each change has
/// the step after which it held. `from` is the state that the run resumes, if any.
Json determinism_record(const SavedState* from, const std::vector<std::string>& changes);

/// Input error naming the file unless the checkpoint has the content that the run of the saved state
/// trained.
void require_same_model(const SavedState& state, const Checkpoint& base);

}  // namespace hearth
