// journal.jsonl: decisions and events of a run, one {"event": NAME, "time": UTC, ...} per line.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "record/json_log.h"

namespace hearth {

class Journal {
 public:
  explicit Journal(const std::string& path) : log_(path) {}
  /// Appends an event with its fields. Storage error if it cannot be written.
  void event(std::string_view name, JsonObject fields = {});

 private:
  JsonLog log_;
};

/// What a journal records about its run. Ignores missing and torn lines.
struct JournaledRun {
  // Set if the run ended, and was not started or resumed since:
  std::optional<int64_t> end;         // last step
  std::optional<Json> identity;       // members of RunIdentity
  std::optional<std::string> alarm;   // reasons of the verdict, if it was an alarm
  std::optional<int64_t> early_stop;  // evaluations without a new best, after which it ended early

  std::map<int64_t, double> evaluation_losses;  // by step, the last per step; NaN: not finite

  /// The loss of the evaluation at a step.
  std::optional<double> loss_at(int64_t step) const;
};
/// Reads a journal. A missing file gives an empty result.
JournaledRun read_journaled_run(const std::string& path);

/// The current time as "2024-06-07T12:34:56.789Z".
std::string utc_now();

}  // namespace hearth
