#include "record/run_logs.h"

namespace hearth {

RunLogs::RunLogs(const RunDirectory& directory, RunReporter& reporter)
    : metrics(directory.metrics()),
      journal(directory.journal()),
      scalars(directory.path()),
      reporter_(reporter) {}

void RunLogs::note_warnings(int64_t step) {
  for (const std::string& warning : reporter_.take_warnings()) {
    journal.event("warning", {{"step", step}, {"message", warning}});
  }
}

}  // namespace hearth
