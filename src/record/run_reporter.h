// The reporter of a training run. Forwards everything, and keeps all warnings for the journal,
// log_warning (base/log.h) included. Thread-safe: forwards one call at a time.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "setup/reporter.h"

namespace hearth {

class RunReporter : public Reporter {
 public:
  /// Receives log_warning until destroyed. Only one may exist at a time.
  explicit RunReporter(Reporter& to);
  ~RunReporter() override;
  RunReporter(const RunReporter&) = delete;
  RunReporter& operator=(const RunReporter&) = delete;

  void note(const std::string& line) override;
  void warn(const std::string& line) override;
  void detail(const std::string& line) override;
  void progress(const std::string& what, uint64_t done, uint64_t total) override;
  void step(const StepMetrics& metrics, int64_t last) override;

  /// Shows the warnings so far, and later ones at once. Until then they are held: a refused run has one
  /// line, its error.
  void show_warnings();
  /// Shows a warning at once without keeping it, for an event that has its own line in the journal.
  void warn_of_event(const std::string& line);
  /// Returns the warnings since the last call, and clears them.
  std::vector<std::string> take_warnings();

 private:
  Reporter& to_;
  std::mutex mutex_;
  std::vector<std::string> warnings_;
  bool shows_ = false;
};

}  // namespace hearth
