#include "train/journal.h"

#include <chrono>
#include <cstdio>
#include <ctime>

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

}  // namespace hearth
