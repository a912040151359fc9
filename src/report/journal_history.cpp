#include "report/journal_history.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/file_ops.h"
#include "base/json_parse.h"
#include "report/log_lines.h"

namespace hearth {
namespace {

constexpr size_t kFirstEvents = 60, kLastEvents = 140;
constexpr size_t kMostEvaluations = 100'000, kMostSamples = 40, kMostResumes = 500;
constexpr size_t kLongestValue = 200, kLongestDetails = 2'000, kLongestSample = 20'000;

std::string text_of(const Json& event, const char* key) {
  const Json* value = event.find(key);
  return value && value->is_string() ? value->as_string() : "";
}

std::optional<int64_t> step_of(const Json& event) {
  const Json* value = event.find("step");
  if (!value || !value->is_signed()) return std::nullopt;
  return value->as_int();
}

int64_t count_of(const Json& event, const char* key) {
  const Json* value = event.find(key);
  return value && value->is_signed() ? std::max<int64_t>(value->as_int(), 0) : 0;
}

double number_of(const Json& event, const char* key) {
  const Json* value = event.find(key);
  return value && value->is_number() ? value->as_double()
                                     : std::numeric_limits<double>::quiet_NaN();
}

std::string plain(const Json& value) {
  return value.is_string() ? value.as_string() : value.dump();
}

/// Of the event of --experts: "layer 0: 1, 5; layer 1: 2, 3".
std::string experts_by_layer(const Json& layers) {
  std::string text;
  for (const Json& entry : layers.as_array()) {
    const Json* layer = entry.is_object() ? entry.find("layer") : nullptr;
    const Json* experts = entry.is_object() ? entry.find("experts") : nullptr;
    if (!layer || !experts || !experts->is_array()) continue;
    text += (text.empty() ? "layer " : "; layer ") + layer->dump() + ": ";
    for (size_t i = 0; i < experts->as_array().size(); ++i) {
      text += (i == 0 ? "" : ", ") + experts->as_array()[i].dump();
    }
    if (text.size() > kLongestDetails) break;
  }
  return text;
}

/// "reason: no space left; seconds: 3", or the bare message of a warning.
std::string details_of(const Json& event) {
  std::string text;
  for (const auto& [key, value] : event.as_object()) {
    if (key == "event" || key == "time" || key == "step" || value.is_null()) continue;
    const bool empty = (value.is_array() && value.as_array().empty()) ||
                       (value.is_object() && value.as_object().empty());
    if (empty) continue;
    if (key == "layers" && value.is_array() && text_of(event, "event") == "experts") {
      text += "; " + experts_by_layer(value);
      continue;
    }
    const std::string shown = plain(value);
    if (!value.is_string() && shown.size() > kLongestValue) continue;  // for programs
    text += text.empty() ? "" : "; ";
    text += key == "message" ? shown : key + ": " + shown;
    if (text.size() > kLongestDetails) break;
  }
  if (text.size() > kLongestDetails) text = text.substr(0, kLongestDetails) + " ...";
  return text;
}

bool is_alarm(const std::string& name) {
  return name == "warning" || name == "skipped_step" || name == "save_failed" ||
         name == "state_rejected" || name == "failed" || name == "verdict";
}

void show(JournalHistory& journal, const std::string& name, const Json& event) {
  journal.events.push_back(
      {name, text_of(event, "time"), step_of(event), details_of(event), is_alarm(name)});
  if (journal.events.size() > 2 * (kFirstEvents + kLastEvents)) {
    const auto from = journal.events.begin() + kFirstEvents;
    const auto to = journal.events.end() - kLastEvents;
    journal.events_left_out += to - from;
    journal.events_of_beginning = kFirstEvents;
    journal.events.erase(from, to);
  }
}

/// The run printed it as a warning, so it is one.
void show_alarm(JournalHistory& journal, const Json& verdict) {
  ++journal.warnings;
  std::string reasons;
  if (const Json* list = verdict.find("reasons"); list && list->is_array()) {
    for (const Json& reason : list->as_array()) {
      if (reason.is_string()) reasons += (reasons.empty() ? "" : "; ") + reason.as_string();
    }
  }
  Json event = JsonObject{{"time", text_of(verdict, "time")}, {"message", "alarm: " + reasons}};
  if (step_of(verdict)) event["step"] = *step_of(verdict);
  show(journal, "verdict", event);
}

void take_evaluation(JournalHistory& journal, const Json& event) {
  const auto step = step_of(event);
  if (!step || *step < 0 || *step > 99'999'999) return;
  journal.evaluations[*step] = {text_of(event, "when"), number_of(event, "loss"),
                                count_of(event, "trained_tokens")};
  if (journal.evaluations.size() > kMostEvaluations) {
    journal.evaluations.erase(std::next(journal.evaluations.begin()));  // before and after stay
  }
}

void take_sample(JournalHistory& journal, const Json& event) {
  GeneratedSample sample{step_of(event), text_of(event, "when"), text_of(event, "prompt"), ""};
  for (const char* key : {"text", "output", "completion"}) {
    if (sample.text.empty()) sample.text = text_of(event, key);
  }
  for (std::string* text : {&sample.prompt, &sample.text}) {
    if (text->size() > kLongestSample) *text = text->substr(0, kLongestSample) + " ...";
  }
  if (journal.samples.size() >= kMostSamples) {
    journal.samples.erase(journal.samples.begin() + kMostSamples / 2);
  }
  journal.samples.push_back(std::move(sample));
}

void take(JournalHistory& journal, const Json& event) {
  const std::string name = text_of(event, "event"), time = text_of(event, "time");
  if (journal.began.empty()) journal.began = time;
  if (!time.empty()) journal.last_time = time;
  if (name == "start" || name == "resume") {
    journal.end = RunEnd::unknown;
    journal.verdict = Json();
    if (name == "start") journal.planned_steps = count_of(event, "steps");
  }
  if (name == "resume") {
    ++journal.resumes;
    const Json* changes = event.find("changes");
    if (changes && changes->is_array()) journal.warnings += std::ssize(changes->as_array());
    if (step_of(event) && journal.resume_steps.size() < kMostResumes) {
      journal.resume_steps.push_back(*step_of(event));
    }
  }
  if (name == "finished" || name == "signal" || name == "failed") {
    journal.end = name == "finished" ? RunEnd::finished
                  : name == "signal" ? RunEnd::signal
                                     : RunEnd::failed;
    journal.end_step = step_of(event);
    journal.end_code = count_of(event, "code");
  }
  journal.warnings += name == "warning" || name == "state_rejected";
  journal.failed_saves += name == "save_failed";
  if (name == "eval") return take_evaluation(journal, event);
  if (name == "sample" || name == "samples") return take_sample(journal, event);
  if (name == "verdict") {
    journal.verdict = event;
    if (text_of(event, "verdict") == "alarm") show_alarm(journal, event);
    return;
  }
  if (name == "plan") {
    journal.plan = event;
    return;
  }
  if (name == "state_saved") {
    ++journal.saves;
    journal.last_saved_step = step_of(event).value_or(journal.last_saved_step);
    const double seconds = number_of(event, "seconds");
    if (seconds > 0) journal.save_s += seconds;
    return;
  }
  show(journal, name.empty() ? "event" : name, event);
}

}  // namespace

JournalHistory read_journal(const std::string& path) {
  JournalHistory journal;
  if (file_info(path).kind == FileKind::none) return journal;
  const InputFile file(path);
  std::string_view text;
  for (LogLines lines(file); lines.next(text);) {
    const Json event = parse_json_at(text, path, lines.number());
    if (!event.is_object()) {
      throw input_error(path + ":" + std::to_string(lines.number()) +
                        ": expected an object of an event; this is not a line of a hearth run");
    }
    take(journal, event);
  }
  return journal;
}

}  // namespace hearth
