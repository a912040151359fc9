// The null back end of builds without CUDA.
#include "device/cuda_runtime.h"

namespace hearth {

CudaCalls* cuda_calls(std::string& why_not) {
  why_not = "this build has no CUDA (see HEARTH_CUDA in docs/devices.md)";
  return nullptr;
}

}  // namespace hearth
