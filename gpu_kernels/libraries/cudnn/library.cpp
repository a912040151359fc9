#include "gpu_kernels/libraries/cudnn/library.h"

#include <cuda_runtime_api.h>
#include <cudnn_version.h>
#include <dlfcn.h>

#include <array>
#include <cstdlib>

#include "gpu_kernels/libraries/library_search.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // where the frontend looks up functions; its users define it
}

namespace hearth::HEARTH_GPU {
namespace {

// Their major versions are parts of the names; those of the headers are what the calls are made for.
const std::string kToolkit = std::to_string(CUDART_VERSION / 1000);
const std::string kFile = "libcudnn.so." + std::to_string(CUDNN_MAJOR);
const std::string kRuntime = "libcudart.so." + kToolkit;
const std::string kCompiler = "libnvrtc.so." + kToolkit;

constexpr int64_t kOldest = 90800;

std::string version_problem(int64_t version) {
  if (version < kOldest) return "is older than 9.8";
  if (version == 91000 || version == 91001) return "is known as broken (9.10.0 and 9.10.1)";
  return {};
}

std::string no_ordered_backward(const Cudnn& of) {
  std::string older;
  if (of.version < kCudnnOrderedBackward) older = of.found;
  if (CUDNN_VERSION < kCudnnOrderedBackward) older = "the cuDNN header of this program";
  if (older.empty()) return {};
  return older +
         " is older than 9.25: its backward with a fixed order of sums has too large a workspace";
}

Cudnn load() {
  constexpr std::array<const char*, 2> kRuntimes = {"cu13", "cuda_runtime"};
  constexpr std::array<const char*, 2> kCompilers = {"cu13", "cuda_nvrtc"};
  constexpr std::array<const char*, 1> kPackages = {"cudnn"};
  Cudnn to;
  std::string runtime, compiler;
  if (open_library(kRuntime, kRuntimes, runtime) == nullptr) {
    to.problem = kRuntime + " not found";
    return to;
  }
  if (open_library(kCompiler, kCompilers, compiler) == nullptr) {
    to.problem = kCompiler + " not found";
    return to;
  }
  to.library = open_library(kFile, kPackages, to.found);
  if (to.library == nullptr) {
    to.problem = kFile + " not found";
    return to;
  }
  const auto get_version = reinterpret_cast<size_t (*)()>(dlsym(to.library, "cudnnGetVersion"));
  if (get_version == nullptr) {
    to.problem = to.found + " lacks cudnnGetVersion";
    return to;
  }
  to.version = static_cast<int64_t>(get_version());
  if (const std::string problem = version_problem(to.version); !problem.empty()) {
    to.problem = to.found + " " + problem;
    return to;
  }
  to.no_ordered_backward = no_ordered_backward(to);
  // The frontend has no other way to be told: the runtime above and not the first of any version, and
  // the backward of kCudnnOrderedBackward in place of one with a workspace of rows times rows.
  setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", runtime.c_str(), 0);
  setenv("CUDNN_FRONTEND_ATTN_DP_WORKSPACE_LIMIT", "0", 0);
  cudnn_frontend::cudnn_dlhandle = to.library;
  return to;
}

}  // namespace

const Cudnn& cudnn() {
  static const Cudnn loaded = load();
  return loaded;
}

}  // namespace hearth::HEARTH_GPU
