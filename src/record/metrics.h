// metrics.jsonl: one object per step (to_json in setup/reporter.h), and nothing else.
#pragma once

#include "record/json_log.h"
#include "setup/reporter.h"

namespace hearth {

class MetricsLog {
 public:
  explicit MetricsLog(const std::string& path) : log_(path) {}
  /// Storage error if the line cannot be written. The step's state must not be saved then.
  void append(const StepMetrics& metrics) { log_.append(to_json(metrics)); }
  void sync() { log_.sync(); }

 private:
  JsonLog log_;
};

}  // namespace hearth
