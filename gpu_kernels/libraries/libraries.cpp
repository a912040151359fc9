#include "gpu_kernels/libraries/libraries.h"

#include <array>
#include <cstdlib>
#include <mutex>
#include <set>
#include <sstream>

#include "base/error.h"
#include "gpu_kernels/libraries/attention_libraries.h"
#include "gpu_kernels/libraries/grouped_libraries.h"
#include "gpu_kernels/libraries/product_libraries.h"

namespace hearth::HEARTH_GPU {
namespace {

// At the start: the libraries that HEARTH_WITHOUT names.
struct Refused {
  Refused() {
    const char* without = std::getenv("HEARTH_WITHOUT");
    for (const std::string_view name : left_out(without != nullptr ? without : "")) {
      names.emplace(name);
    }
  }
  std::mutex mutex;
  std::set<std::string, std::less<>> names;
};
Refused& refused_libraries() {
  static Refused all;
  return all;
}

std::vector<const Library*> all_libraries() {
  std::vector<const Library*> all;
  for (const ProductLibrary* library : product_libraries()) all.push_back(library);
  for (const GroupedLibrary* library : grouped_libraries()) all.push_back(library);
  for (const AttentionLibrary* library : attention_libraries()) all.push_back(library);
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
  const std::lock_guard lock(refused_libraries().mutex);
  return refused_libraries().names.contains(name);
}

void refuse_library(std::string_view name, bool refused) {
  const std::lock_guard lock(refused_libraries().mutex);
  if (refused) {
    refused_libraries().names.emplace(name);
  } else {
    refused_libraries().names.erase(std::string(name));
  }
}

std::vector<OpLibrary> found_libraries() {
  std::vector<OpLibrary> found;
  for (const Library* library : all_libraries()) {
    std::string version = library->version();
    if (version.empty() || library->refused()) continue;
    found.push_back({std::string(library->name()), std::move(version)});
  }
  return found;
}

}  // namespace hearth::HEARTH_GPU
