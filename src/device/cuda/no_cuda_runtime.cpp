// The null back end of builds without CUDA.
#include "device/cuda_runtime.h"

namespace hearth {

CudaCalls* cuda_calls(std::string& why_not) {
  why_not = "this build has no CUDA: " HEARTH_CUDA_WHY_NOT;
  return nullptr;
}

std::string_view cuda_architectures() { return {}; }

}  // namespace hearth
