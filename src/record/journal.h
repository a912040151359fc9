// journal.jsonl: decisions and events of a run, {"event": NAME, "time": UTC, ...}.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "record/json_log.h"

namespace hearth {

class Journal {
 public:
  explicit Journal(const std::string& path) : log_(path) {}
  /// Appends an event with its fields. Storage error when it cannot be written.
  void event(std::string_view name, JsonObject fields = {});

 private:
  JsonLog log_;
};

/// The step with which the run of a journal ended; nullopt if it did not end since it last started or
/// resumed, or if the journal does not tell (missing, torn).
std::optional<int64_t> journaled_end(const std::string& path);

/// What identified the run (run_identity) that ended so; nullopt where the journal does not tell.
std::optional<Json> journaled_run(const std::string& path);

/// Whether a journal has the result of an evaluation at a step.
bool journaled_evaluation(const std::string& path, int64_t step);

/// The loss of the last evaluation at a step; NaN where it was not finite.
std::optional<double> journaled_loss(const std::string& path, int64_t step);

/// The reasons of the alarm that the run of a journal ended with, if it did.
std::optional<std::string> journaled_alarm(const std::string& path);

/// The current time as "2024-06-07T12:34:56.789Z".
std::string utc_now();

}  // namespace hearth
