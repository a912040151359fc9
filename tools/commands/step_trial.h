// A few real steps of a planned run in a child process, for `hearth plan --tune`.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "setup/config.h"

namespace hearth {

/// A folder of its own below TMPDIR, removed with all that is in it. Not of the user's.
class TrialFolder {
 public:
  TrialFolder();
  ~TrialFolder();
  TrialFolder(const TrialFolder&) = delete;
  TrialFolder& operator=(const TrialFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A run to try: its recorded options with some replaced, and its plan.
struct StepTrial {
  std::vector<TrainConfig::Recorded> options;
  Json plan;
};

struct TrialTimes {
  std::vector<double> seconds;  // of the steps that ended in time, in their order
  std::string failure;          // the last line of the child, if it ended early
};

/// Starts this program as `train` with the trial's plan, in `folder`/`name` and in a process group of
/// its own. Once `steps` steps have ended, or `limit_s` is over, or this process is asked to stop,
/// ends the whole group and waits for it. The child ends with this process, however that ends.
TrialTimes run_trial(const TrialFolder& folder, const std::string& name, const StepTrial& trial,
                     int steps, double limit_s);

}  // namespace hearth
