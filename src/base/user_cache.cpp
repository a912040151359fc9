#include "base/user_cache.h"

#include <cstdlib>

namespace hearth {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && value[0] == '/' ? value : "";
}

}  // namespace

std::string user_cache_directory() {
  const std::string cache = variable("XDG_CACHE_HOME"), home = variable("HOME");
  if (!cache.empty()) return cache + "/hearth";
  return home.empty() ? "" : home + "/.cache/hearth";
}

}  // namespace hearth
