#include "gpu_kernels/libraries/cublaslt/library.h"

#include <dlfcn.h>

#include <array>

#include "gpu_kernels/libraries/library_search.h"

namespace hearth::HEARTH_GPU {
namespace {

// Its major version is part of the name; that of the header is what the calls are made for.
const std::string kFile = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);

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
  constexpr std::array<const char*, 2> kPackages = {"cu13", "cublas"};
  std::string file;
  void* const library = open_library(kFile, kPackages, file);
  if (library == nullptr) return functions;
  if (!look_up_all(library, functions)) {
    functions.problem = file + " lacks functions that are needed";
    return functions;
  }
  functions.problem.clear();
  functions.found = file;
  return functions;
}

}  // namespace

const CublasLt& cublaslt() {
  static const CublasLt functions = load();
  return functions;
}

}  // namespace hearth::HEARTH_GPU
