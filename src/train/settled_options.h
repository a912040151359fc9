// Options that the first start of a run settles.
#pragma once

#include "base/json.h"
#include "setup/config.h"

namespace hearth {

/// Options that the user left open keep, on a resume, the value of the run's saved state, or of its
/// journal if it ended without one: --template-date (today at the first start), --packing, --epochs
/// and --warmup-ratio, whose defaults follow from the data and differed in older versions, and
/// --logical-shards (the ranks of the first start). So a
/// resume gives the same bits in any version. Changes the recorded values, too.
void settle_options(TrainConfig& config);

/// For the other ranks of a launch, which may not see the saved states: what rank 0 settled.
Json settled(const TrainConfig& config);
void take_settled(TrainConfig& config, const Json& settled);

}  // namespace hearth
