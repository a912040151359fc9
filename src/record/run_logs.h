// The logs of a training run.
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

  /// Opens the logs in the directory to append. The reporter must outlive them.
  RunLogs(const RunDirectory& directory, RunReporter& reporter);
  /// Appends the warnings since the last call to the journal.
  void note_warnings(int64_t step);

 private:
  RunReporter& reporter_;
};

}  // namespace hearth
