#include "gpu_kernels/cublaslt/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace hearth::HEARTH_GPU {
namespace {

// Its major version is part of the name; that of the header is what the calls are made for.
const std::string kFile = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);

// The folders of a Python environment that hold NVIDIA's libraries, in order of their names.
void add_packages(const std::filesystem::path& environment, std::vector<std::string>& folders) {
  std::error_code none;
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(environment / "lib", none)) {
    if (!entry.path().filename().string().starts_with("python")) continue;
    for (const char* package : {"cu13", "cublas"}) {
      found.push_back(entry.path() / "site-packages" / "nvidia" / package / "lib");
    }
  }
  std::sort(found.begin(), found.end());
  folders.insert(folders.end(), found.begin(), found.end());
}

std::vector<std::string> candidates() {
  std::vector<std::string> folders = {"/usr/local/cuda/lib64", "/usr/local/cuda/lib"};
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const char* environment = std::getenv(name)) add_packages(environment, folders);
  }
  std::vector<std::string> files = {kFile};  // where the loader looks
  for (const std::string& folder : folders) {
    std::error_code none;
    const std::filesystem::path file = std::filesystem::path(folder) / kFile;
    if (std::filesystem::exists(file, none)) files.push_back(file.string());
  }
  return files;
}

template <class F>
bool look_up(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

bool look_up_all(void* library, CublasLt& to) {
  return look_up(library, "cublasLtCreate", to.create) &&
         look_up(library, "cublasLtGetVersion", to.get_version) &&
         look_up(library, "cublasLtMatmul", to.matmul) &&
         look_up(library, "cublasLtMatmulDescCreate", to.desc_create) &&
         look_up(library, "cublasLtMatmulDescDestroy", to.desc_destroy) &&
         look_up(library, "cublasLtMatmulDescSetAttribute", to.desc_set) &&
         look_up(library, "cublasLtMatrixLayoutCreate", to.layout_create) &&
         look_up(library, "cublasLtMatrixLayoutDestroy", to.layout_destroy) &&
         look_up(library, "cublasLtMatmulPreferenceCreate", to.preference_create) &&
         look_up(library, "cublasLtMatmulPreferenceDestroy", to.preference_destroy) &&
         look_up(library, "cublasLtMatmulPreferenceSetAttribute", to.preference_set) &&
         look_up(library, "cublasLtMatmulAlgoGetHeuristic", to.heuristic);
}

CublasLt load() {
  CublasLt functions;
  functions.problem = kFile + " not found";
  for (const std::string& file : candidates()) {
    void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed
    if (library == nullptr) continue;
    if (!look_up_all(library, functions)) {
      functions.problem = file + " lacks functions that are needed";
      continue;
    }
    functions.problem.clear();
    functions.found = file;
    return functions;
  }
  return functions;
}

}  // namespace

const CublasLt& cublaslt() {
  static const CublasLt functions = load();
  return functions;
}

}  // namespace hearth::HEARTH_GPU
