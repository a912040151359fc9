// The logs that a training run writes while it runs.
#pragma once

#include <cstdint>

#include "record/journal.h"
#include "record/metrics.h"
#include "record/run_directory.h"
#include "record/run_reporter.h"
#include "record/tensorboard.h"

namespace hearth {

struct RunLogs {
  MetricsLog metrics;
  Journal journal;
  TensorBoardLog scalars;

  /// Opens the logs of the directory, to append. The reporter must outlive them.
  RunLogs(const RunDirectory& directory, RunReporter& reporter);
  /// Appends what was warned of since the last call to the journal.
  void note_warnings(int64_t step);

 private:
  RunReporter& reporter_;
};

}  // namespace hearth
