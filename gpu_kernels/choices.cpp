#include "gpu_kernels/choices.h"

#include <map>
#include <mutex>
#include <set>

namespace hearth::HEARTH_GPU {
namespace {

// What the process knows of choices.
struct Known {
  std::mutex mutex;
  std::map<std::string, std::string, std::less<>> refusals;
  std::set<std::string> said;
};
Known& known() {
  static Known all;
  return all;
}

}  // namespace

std::string refusal_of(std::string_view name) {
  const std::lock_guard lock(known().mutex);
  const auto found = known().refusals.find(name);
  return found == known().refusals.end() ? std::string() : found->second;
}

void refuse_choice(std::string_view name, std::string reason) {
  const std::lock_guard lock(known().mutex);
  known().refusals[std::string(name)] = std::move(reason);
}

void say_declined(const Say& say, std::string_view name, const std::string& reason) {
  const std::string line = std::string(name) + " not used: " + reason;
  {
    const std::lock_guard lock(known().mutex);
    if (!known().said.insert(line).second) return;
  }
  say(line);
}

}  // namespace hearth::HEARTH_GPU
