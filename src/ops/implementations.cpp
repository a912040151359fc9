#include "ops/implementations.h"

#include <mutex>
#include <set>

#include "base/log.h"

namespace hearth {

void log_line(const std::string& line) { log_info(line); }

void say_declined(const Say& say, std::string_view name, std::string_view reason) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::string line = std::string(name) + " not used: " + std::string(reason);
  {
    const std::lock_guard lock(mutex);
    if (!said.insert(line).second) return;
  }
  say(line);
}

}  // namespace hearth
