// The content of a report, read from a run directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "report/journal_history.h"
#include "report/metrics_history.h"

namespace hearth {

/// A memory line of plan.json.
struct PlannedMemory {
  std::string name, basis;
  double bytes = 0;
  std::optional<double> measured;
};
struct PlannedPlace {
  std::string place;                        // "host", a device
  double peak_bytes = 0, budget_bytes = 0;  // no budget: 0
  std::optional<double> measured_peak_bytes;
  std::vector<PlannedMemory> lines;
};

struct RunHistory {
  std::string directory, name;  // as given; its last component
  MetricsHistory metrics;
  JournalHistory journal;
  Json plan;  // plan.json, an object; null if there is none
  std::vector<PlannedPlace> memory;
  std::vector<std::pair<std::string, std::string>> config;  // config.yaml, names and YAML values
  std::string result;                                       // "model", "adapter"; empty: none yet

  /// The value of an option without quotes; empty if it is not recorded.
  std::string option(const std::string& key) const;
  /// A number in plan.json.
  std::optional<double> planned(const char* key) const;
  /// The peak memory of the process: plan.json's measurement at the end of the run, else the
  /// largest value in metrics.jsonl. 0: unknown.
  double peak_bytes() const;
};

/// Reads a run directory, during or after a run; changes nothing. Input error if it is not a
/// directory, has no file of a run, or a file is malformed.
RunHistory read_run(const std::string& directory);

}  // namespace hearth
