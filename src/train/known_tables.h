// The cost tables that a run need not measure: those of the state that it resumes, or of --profile.
#pragma once

#include "setup/opened_model.h"
#include "setup/run_tables.h"

namespace hearth {

/// The tables of the saved state that a run would resume, so that it plans by the same; else those of
/// `config.profile`. If --allow-change names the profile and the state's run had another one, the
/// given one counts. Input error if a table of --profile is missing or cannot be used, or if the
/// table that paces a place (costs=) changed since the state was saved, unless --allow-change names
/// the devices. Storage error if the state's record is damaged.
RunTables known_tables(const TrainConfig& config, const OpenedModel& opened);

/// What a saved state holds of the tables of a run.
Json saved_tables(const RunTables& tables, const OpenedModel& opened);

}  // namespace hearth
