// Progress of a run: what is saved beside weights and moments, and whether a state may be resumed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/samples/sampler.h"
#include "budget/placed_model.h"
#include "state/saved_state.h"

namespace hearth {

/// Counters of a run; part of the saved state.
struct Progress {
  int64_t step = 0;     // whole steps done, skipped ones included
  int64_t updates = 0;  // steps that changed weights: AdamW's count
  int64_t tokens = 0;
  int64_t trained_tokens = 0;
  int64_t skipped = 0;  // steps with a loss or gradient that was not finite
  int64_t skipped_in_a_row = 0;
  SamplerCursor cursor;  // where the next step's data starts
};
void register_progress(StateRegistry& registry, Progress& progress, Sampler& sampler);

/// What identifies a run, kept in the manifest of its states: options, digests of model and data,
/// what was resolved.
Json run_identity(const TrainConfig& config, const PlacedModel& model,
                  const std::vector<std::pair<std::string, Digest>>& data,
                  const std::vector<std::pair<std::string, Digest>>& eval_data);

/// What a run promises of its bits, as its states keep it: {"level": "replay-exact", "changes": [...]},
/// each change with the step from which on it held. `from`: the state that the run goes on from.
Json determinism_record(const SavedState* from, const std::vector<std::string>& changes);

/// Input error, naming the file, unless the checkpoint has the content that the saved state's run
/// trained.
void check_model_content(const Json& saved, const Checkpoint& base);

/// Compares the identity of a saved state with this run's. Usage error for an option that changed
/// and is not in `--allow-change`; input error for changed content of model or data, naming the
/// file. `--allow-change` lets an option have another value, so `--data` name other files, never a
/// file that stays have other content. Returns the allowed changes as "name: old -> new", and those of
/// the build and the machine, which nothing forbids: each ends the promise of equal bits.
std::vector<std::string> check_identity(const Json& saved, const Json& current,
                                        const TrainConfig& config);

}  // namespace hearth
