// Reads the decisions of an earlier run, for one that repeats them (--replay-decisions).
#pragma once

#include <memory>
#include <string>

#include "budget/placed_model.h"
#include "plan/decisions/recorded_splits.h"

namespace hearth {

/// The decisions of a journal that --journal-decisions full wrote. Steps that the recorded run repeated
/// after a resume count as it computed them last; a torn last line counts for nothing. Input error,
/// naming file and line, for a decision that does not fit the layers, experts or devices of the model.
std::shared_ptr<const RecordedSplits> read_recorded_decisions(const std::string& path,
                                                              const PlacedModel& model);

/// Input error, naming file and line, unless the record has every decision that the training schedule
/// of the model makes in steps `first` to `last`.
void require_recorded(const RecordedSplits& recorded, const PlacedModel& model, int64_t first,
                      int64_t last);

}  // namespace hearth
