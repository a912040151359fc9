#include "gpu_kernels/choices.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <set>
#include <sstream>

#include "base/error.h"

namespace hearth::HEARTH_GPU {
namespace {

// What the process knows of choices. At first it does without those that HEARTH_WITHOUT names.
struct Known {
  Known() {
    const char* without = std::getenv("HEARTH_WITHOUT");
    for (const std::string_view name : left_out(without != nullptr ? without : "")) {
      refused.emplace(name);
    }
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

std::vector<std::string_view> left_out(const std::string& text) {
  static constexpr std::array<std::string_view, 3> kNames = {"cuDNN", "CUTLASS", "cuBLASLt"};
  std::vector<std::string_view> result;
  std::stringstream names(text);
  for (std::string name; std::getline(names, name, ',');) {
    const auto known = std::find(kNames.begin(), kNames.end(), name);
    if (known == kNames.end()) {
      throw usage_error("HEARTH_WITHOUT: " + quoted(name) +
                        ": expected names of cuDNN, CUTLASS, cuBLASLt with commas between");
    }
    result.push_back(*known);
  }
  return result;
}

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
