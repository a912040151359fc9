#include "support/planted.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string_view>

#include "base/planted.h"

namespace hearth {
namespace {

using Names = std::set<std::string, std::less<>>;

Names of_environment() {
  Names names;
  const char* list = std::getenv("HEARTH_PLANTED");
  for (std::string_view left = list ? list : ""; !left.empty();) {
    const size_t end = std::min(left.find(','), left.size());
    names.emplace(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return names;
}

// A test may change them under a run, while the thread of a save asks for them.
struct Planted {
  std::shared_mutex mutex;
  Names names = of_environment();
};

Planted& all_planted() {
  static Planted planted;
  return planted;
}

}  // namespace

bool planted(std::string_view fault) {
  Planted& all = all_planted();
  const std::shared_lock lock(all.mutex);
  return all.names.contains(fault);
}

namespace test {

bool any_planted() {
  Planted& all = all_planted();
  const std::shared_lock lock(all.mutex);
  return !all.names.empty();
}

PlantedFault::PlantedFault(std::string name) : name_(std::move(name)) {
  const std::unique_lock lock(all_planted().mutex);
  is_new_ = all_planted().names.insert(name_).second;
}
PlantedFault::~PlantedFault() {
  const std::unique_lock lock(all_planted().mutex);
  if (is_new_) all_planted().names.erase(name_);
}

}  // namespace test
}  // namespace hearth
