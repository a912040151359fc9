// What a training run tells: everything goes on to its reporter, and warnings are kept for the
// journal, those of the rooms below (base/log.h) among them. One thread speaks at a time.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "setup/reporter.h"

namespace hearth {

class RunReporter : public Reporter {
 public:
  /// Hears the warnings of log_warning while it lives. One at a time.
  explicit RunReporter(Reporter& to);
  ~RunReporter() override;
  RunReporter(const RunReporter&) = delete;
  RunReporter& operator=(const RunReporter&) = delete;

  void note(const std::string& line) override;
  void warn(const std::string& line) override;
  void progress(const std::string& what, uint64_t done, uint64_t total) override;
  void step(const StepMetrics& metrics, int64_t last) override;

  /// A warning of something that has an event of its own in the journal: shown, not kept.
  void warn_of_event(const std::string& line);
  /// The warnings kept since the last call.
  std::vector<std::string> take_warnings();

 private:
  Reporter& to_;
  std::mutex mutex_;
  std::vector<std::string> warnings_;
};

}  // namespace hearth
