#include "gpu_kernels/choices.h"

#include <cstdlib>
#include <mutex>
#include <set>
#include <sstream>

namespace hearth::HEARTH_GPU {
namespace {

// What the process knows of choices. At first it does without those that HEARTH_WITHOUT names
// ("cuDNN,CUTLASS").
struct Known {
  Known() {
    const char* without = std::getenv("HEARTH_WITHOUT");
    std::stringstream names(without != nullptr ? without : "");
    for (std::string name; std::getline(names, name, ',');) refused.insert(name);
  }
  std::mutex mutex;
  std::set<std::string, std::less<>> refused;
  std::set<std::string> said;
};
Known& known() {
  static Known all;
  return all;
}

}  // namespace

bool is_refused(std::string_view name) {
  const std::lock_guard lock(known().mutex);
  return known().refused.contains(name);
}

void refuse_choice(std::string_view name, bool refused) {
  const std::lock_guard lock(known().mutex);
  if (refused) {
    known().refused.emplace(name);
  } else {
    known().refused.erase(std::string(name));
  }
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
