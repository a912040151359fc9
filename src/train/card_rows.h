// The training that the model card of a result tells of. Private to src/train/.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "checkpoint/model_card.h"

namespace hearth {

/// Names of the data files, options, losses, version. `extra`: the member of a saved state's manifest,
/// with the run's identity and losses. `step`: of the weights. `journal`: of the run, for its
/// evaluations; may be missing. No path is among the rows. So a run and `export --from-state` make the
/// same card.
CardRows card_rows(const Json& extra, int64_t step, const std::string& journal);

}  // namespace hearth
