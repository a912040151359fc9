// The CUDA runtime of this build: the real one, or the null back end that says why there is none.
#pragma once

#include <string>
#include <string_view>

#include "device/cuda_calls.h"

namespace hearth {

/// The runtime, which lives as long as the program; null, and the reason in `why_not`, where this
/// build has none, the machine has no driver or one that is too old, or no GPU.
CudaCalls* cuda_calls(std::string& why_not);

/// The GPUs that this build has code for, as `missing_cuda_code` reads them; empty in the null back end.
std::string_view cuda_architectures();

}  // namespace hearth
