// What journal.jsonl tells of a run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace hearth {

/// An event that people want to see.
struct JournalEvent {
  std::string name, time;
  std::optional<int64_t> step;
  std::string details;  // its other fields as text
  bool is_alarm = false;
};

struct Evaluation {
  std::string when;
  double loss = 0;  // NaN where it was not finite
  int64_t trained_tokens = 0;
};

/// A text that the model wrote.
struct GeneratedSample {
  std::optional<int64_t> step;
  std::string when, prompt, text;
};

enum class RunEnd : uint8_t { unknown, finished, signal, failed };

struct JournalHistory {
  std::vector<JournalEvent> events;           // of many the first and the last
  int64_t events_left_out = 0;                // between them
  size_t events_of_beginning = 0;             // how many stand before the gap
  std::map<int64_t, Evaluation> evaluations;  // by step; of repeated steps the last
  std::vector<GeneratedSample> samples;
  int64_t saves = 0, last_saved_step = 0, failed_saves = 0, resumes = 0, warnings = 0;
  std::vector<int64_t> resume_steps;
  double save_s = 0;  // in all, most of it under steps
  std::optional<int64_t> planned_steps;
  Json plan;  // the event of the last start; null if there is none
  std::string began, last_time;
  Json verdict;  // the event, of the last start alone; null if there is none
  RunEnd end = RunEnd::unknown;
  std::optional<int64_t> end_step;
  int64_t end_code = 0;  // the exit code of a run that failed
};

/// Reads the journal line by line. Events of names that this version does not know are shown like
/// the others. A missing file is an empty journal; a torn last line is left out. Input error naming
/// file and line for a line that is no JSON object.
JournalHistory read_journal(const std::string& path);

}  // namespace hearth
