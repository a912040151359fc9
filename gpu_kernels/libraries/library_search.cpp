#include "gpu_kernels/libraries/library_search.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace hearth::HEARTH_GPU {
namespace {

// The folders of a Python environment that hold the packages' libraries, in order of their names.
void add_packages(const std::filesystem::path& environment, std::span<const char* const> packages,
                  std::vector<std::string>& folders) {
  std::error_code none;
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(environment / "lib", none)) {
    if (!entry.path().filename().string().starts_with("python")) continue;
    for (const char* package : packages) {
      found.push_back(entry.path() / "site-packages" / "nvidia" / package / "lib");
    }
  }
  std::sort(found.begin(), found.end());
  folders.insert(folders.end(), found.begin(), found.end());
}

}  // namespace

std::vector<std::string> library_candidates(const std::string& file,
                                            std::span<const char* const> packages) {
  std::vector<std::string> folders = {"/usr/local/cuda/lib64", "/usr/local/cuda/lib"};
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const char* environment = std::getenv(name)) add_packages(environment, packages, folders);
  }
  std::vector<std::string> files = {file};
  for (const std::string& folder : folders) {
    std::error_code none;
    const std::filesystem::path path = std::filesystem::path(folder) / file;
    if (std::filesystem::exists(path, none)) files.push_back(path.string());
  }
  return files;
}

void* open_library(const std::string& file, std::span<const char* const> packages,
                   std::string& found) {
  for (const std::string& candidate : library_candidates(file, packages)) {
    void* const library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    found = candidate;
    return library;
  }
  return nullptr;
}

}  // namespace hearth::HEARTH_GPU
