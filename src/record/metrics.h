// metrics.jsonl: one object a step (to_json of setup/reporter.h), and nothing else.
#pragma once

#include "record/json_log.h"
#include "setup/reporter.h"

namespace hearth {

class MetricsLog {
 public:
  explicit MetricsLog(const std::string& path) : log_(path) {}
  /// Storage error when the line cannot be written: the step's state must not be saved then.
  void append(const StepMetrics& metrics) { log_.append(to_json(metrics)); }
  void sync() { log_.sync(); }

 private:
  JsonLog log_;
};

}  // namespace hearth
