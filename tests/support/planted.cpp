#include "support/planted.h"

#include <algorithm>
#include <cstdlib>
#include <set>
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

// Changed between runs only, read by all threads.
Names& planted_names() {
  static Names names = of_environment();
  return names;
}

}  // namespace

bool planted(std::string_view fault) { return planted_names().contains(fault); }

namespace test {

PlantedFault::PlantedFault(std::string name) : name_(std::move(name)) {
  is_new_ = planted_names().insert(name_).second;
}
PlantedFault::~PlantedFault() {
  if (is_new_) planted_names().erase(name_);
}

}  // namespace test
}  // namespace hearth
