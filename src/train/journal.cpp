#include "train/journal.h"

#include <chrono>
#include <cstdio>
#include <ctime>
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

std::optional<int64_t> journaled_end(const std::string& path) {
  if (file_info(path).kind != FileKind::regular) return std::nullopt;
  std::optional<int64_t> end;
  std::istringstream lines(read_file(path));
  for (std::string text; std::getline(lines, text);) {
    try {
      const Json line = parse_json(text, path);
      const Json* event = line.find("event");
      const Json* step = line.find("step");
      if (event == nullptr || !event->is_string()) continue;
      const std::string& name = event->as_string();
      if (name == "start" || name == "resume") end.reset();
      if (name == "finished" && step != nullptr && step->is_signed()) end = step->as_int();
    } catch (const Error&) {  // a torn line tells nothing
    }
  }
  return end;
}

}  // namespace hearth
