// The history of a run from journal.jsonl.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace hearth {

/// An event for the list of events.
struct JournalEvent {
  std::string name, time;
  std::optional<int64_t> step;
  std::string details;  // its other fields as text
  bool is_alarm = false;
};

struct Evaluation {
  std::string when;
  double loss = 0;  // NaN: not finite
  int64_t trained_tokens = 0;
};

/// A text that the model wrote.
struct GeneratedSample {
  std::optional<int64_t> step;
  std::string when, prompt, text;
};

enum class RunEnd : uint8_t { unknown, finished, signal, failed };

struct JournalHistory {
  std::vector<JournalEvent> events;           // if there are many, only the first and the last
  int64_t events_left_out = 0;                // number omitted between them
  size_t events_of_beginning = 0;             // number of `events` before the gap
  std::map<int64_t, Evaluation> evaluations;  // by step; the last for repeated steps
  std::vector<GeneratedSample> samples;
  int64_t saves = 0, last_saved_step = 0, failed_saves = 0, resumes = 0, warnings = 0;
  std::vector<int64_t> resume_steps;
  double save_s = 0;  // total; mostly overlaps steps
  std::optional<int64_t> planned_steps;
  Json plan;  // the event of the last start; null if there is none
  std::string began, last_time;
  Json verdict;  // the event since the last start; null if there is none
  RunEnd end = RunEnd::unknown;
  std::optional<int64_t> end_step;
  int64_t end_code = 0;  // the exit code of a run that failed
};

/// Reads the journal line by line. Keeps events with unknown names. A missing file is an empty
/// journal; ignores a torn last line. Input error naming file and line if a line is not a JSON
/// object.
JournalHistory read_journal(const std::string& path);

}  // namespace hearth
