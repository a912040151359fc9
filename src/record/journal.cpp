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

/// The reasons of an alarm; nullopt for any other event.
std::optional<std::string> alarm_in(const Json& line) {
  const Json *verdict = line.find("verdict"), *reasons = line.find("reasons");
  if (verdict == nullptr || !verdict->is_string() || verdict->as_string() != "alarm") return {};
  if (reasons == nullptr || !reasons->is_array()) return {};
  std::string alarm;
  for (const Json& reason : reasons->as_array()) {
    if (reason.is_string()) alarm += (alarm.empty() ? "" : "; ") + reason.as_string();
  }
  return alarm;
}

void read_event(const std::string& event, const Json& line, JournaledRun& run) {
  const Json* step = line.find("step");
  const bool has_step = step != nullptr && step->is_signed();
  if (event == "start" || event == "resume") {
    run.end.reset();
    run.identity.reset();
    run.alarm.reset();
    run.early_stop.reset();
  } else if (event == "early_stop") {
    const Json* evaluations = line.find("evaluations");
    if (evaluations != nullptr && evaluations->is_signed()) run.early_stop = evaluations->as_int();
  } else if (event == "finished") {
    const Json* identity = line.find("run");
    if (has_step && step->as_int() >= 0) run.end = step->as_int();
    if (identity != nullptr && identity->is_object()) run.identity = *identity;
  } else if (event == "verdict") {
    run.alarm = alarm_in(line);
  } else if (event == "eval" && has_step) {
    const Json* loss = line.find("loss");
    run.evaluation_losses[step->as_int()] = loss != nullptr && loss->is_number()
                                                ? loss->as_double()
                                                : std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace

std::optional<double> JournaledRun::loss_at(int64_t step) const {
  const auto found = evaluation_losses.find(step);
  return found != evaluation_losses.end() ? std::optional(found->second) : std::nullopt;
}

JournaledRun read_journaled_run(const std::string& path) {
  JournaledRun run;
  if (file_info(path).kind != FileKind::regular) return run;
  std::istringstream lines(read_file(path));
  for (std::string text; std::getline(lines, text);) {
    try {
      const Json line = parse_json(text, path);
      const Json* event = line.find("event");
      if (event != nullptr && event->is_string()) read_event(event->as_string(), line, run);
    } catch (const Error&) {  // a torn line says nothing
    }
  }
  return run;
}

}  // namespace hearth
