// All that a report shows of a run directory, read from its files.
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

/// A line of plan.json's memory.
struct PlannedMemory {
  std::string name, basis;
  double bytes = 0;
  std::optional<double> measured;
};
struct PlannedPlace {
  std::string place;  // "host", a device
  double peak_bytes = 0, budget_bytes = 0;
  std::optional<double> measured_peak_bytes;
  std::vector<PlannedMemory> lines;
};

struct RunHistory {
  std::string directory, name;  // as given; its last part
  MetricsHistory metrics;
  JournalHistory journal;
  Json plan;  // plan.json, an object; null if there is none
  std::vector<PlannedPlace> memory;
  std::vector<std::pair<std::string, std::string>> config;  // config.yaml, names and YAML values
  std::string result;                                       // "model", "adapter"; empty: none yet

  /// The value of an option without quotes; empty if it is not recorded.
  std::string option(const std::string& key) const;
  /// A number of plan.json.
  std::optional<double> planned(const char* key) const;
  /// The peak of the process: what plan.json measured at the end of the run; while it trains, the most
  /// that a step has written. 0: not known.
  double peak_bytes() const;
};

/// Reads a run directory, while it is trained in or later; changes nothing. Input error when it is no
/// directory, holds no file of a run, or a file breaks its format.
RunHistory read_run(const std::string& directory);

}  // namespace hearth
