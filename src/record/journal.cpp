#include "record/journal.h"

#include <chrono>
#include <cstdio>
#include <ctime>
#include <limits>
#include <sstream>

#include "base/error.h"

namespace hearth {

std::string utc_now() {
  const auto now =
      std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const int64_t milliseconds = now.time_since_epoch().count();
  const std::time_t seconds = milliseconds / 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char date[32];
  const size_t length = std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
  char fraction[16];
  std::snprintf(fraction, sizeof fraction, ".%03dZ", static_cast<int>(milliseconds % 1000));
  return std::string(date, length) + fraction;
}

void Journal::event(std::string_view name, JsonObject fields) {
  JsonObject line{{"event", name}, {"time", utc_now()}};
  line.insert(line.end(), std::make_move_iterator(fields.begin()),
              std::make_move_iterator(fields.end()));
  log_.append(Json(std::move(line)));
}

namespace {

/// Calls `use(event, step, line)` for every event that has a step, and for the others with -1.
template <class Use>
void for_each_event(const std::string& path, const Use& use) {
  if (file_info(path).kind != FileKind::regular) return;
  std::istringstream lines(read_file(path));
  for (std::string text; std::getline(lines, text);) {
    try {
      const Json line = parse_json(text, path);
      const Json* event = line.find("event");
      const Json* step = line.find("step");
      if (event == nullptr || !event->is_string()) continue;
      use(event->as_string(), step != nullptr && step->is_signed() ? step->as_int() : -1, line);
    } catch (const Error&) {  // a torn line tells nothing
    }
  }
}

}  // namespace

std::optional<int64_t> journaled_end(const std::string& path) {
  std::optional<int64_t> end;
  for_each_event(path, [&](const std::string& event, int64_t step, const Json&) {
    if (event == "start" || event == "resume") end.reset();
    if (event == "finished" && step >= 0) end = step;
  });
  return end;
}

std::optional<Json> journaled_run(const std::string& path) {
  std::optional<Json> run;
  for_each_event(path, [&](const std::string& event, int64_t, const Json& line) {
    if (event == "start" || event == "resume") run.reset();
    const Json* identity = line.find("run");
    if (event == "finished" && identity != nullptr && identity->is_object()) run = *identity;
  });
  return run;
}

bool journaled_evaluation(const std::string& path, int64_t step) {
  return journaled_loss(path, step).has_value();
}

std::optional<double> journaled_loss(const std::string& path, int64_t step) {
  std::optional<double> loss;
  for_each_event(path, [&](const std::string& event, int64_t at, const Json& line) {
    if (event != "eval" || at != step) return;
    const Json* value = line.find("loss");
    loss = value != nullptr && value->is_number() ? value->as_double()
                                                  : std::numeric_limits<double>::quiet_NaN();
  });
  return loss;
}

std::optional<std::string> journaled_alarm(const std::string& path) {
  std::optional<std::string> alarm;
  for_each_event(path, [&](const std::string& event, int64_t, const Json& line) {
    if (event == "start" || event == "resume" || event == "verdict") alarm.reset();
    const Json *verdict = line.find("verdict"), *reasons = line.find("reasons");
    if (event != "verdict" || verdict == nullptr || !verdict->is_string()) return;
    if (verdict->as_string() != "alarm" || reasons == nullptr || !reasons->is_array()) return;
    alarm = "";
    for (const Json& reason : reasons->as_array()) {
      if (reason.is_string()) *alarm += (alarm->empty() ? "" : "; ") + reason.as_string();
    }
  });
  return alarm;
}

}  // namespace hearth
