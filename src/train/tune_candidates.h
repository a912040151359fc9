// Other schedules of a run that give the same bits, by predicted time: what `hearth plan --tune` tries.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "setup/config.h"
#include "setup/reporter.h"

namespace hearth {

struct TuneCandidate {
  std::string what;    // "groups of 2, blocks recomputed, 4 workers"
  std::string beside;  // options to give beside the plan file; empty: none
  TrainConfig config;  // of the run; its plan file is unset
  Json plan;           // as `hearth plan --json` prints it
  double predicted_s = 0;
};

/// The default schedule, then at most `most` others, the fastest first. They vary what the options
/// leave open: the micro-batches of a group, recompute, whether the experts are on the host,
/// without a list of devices the workers, and the cut into stages, by a layer. All fit, have times,
/// and give the bits of the default. Errors as report_plan; usage error if the default does not fit
/// or has no time.
std::vector<TuneCandidate> tune_candidates(const TrainConfig& config, size_t most,
                                           Reporter& reporter);

}  // namespace hearth
