// The CUDA runtime of this build: the real runtime, or a null back end that says why there is none.
#pragma once

#include <string>
#include <string_view>

#include "device/cuda_calls.h"

namespace hearth {

/// The runtime, which lives as long as the program. Null, with the reason in `why_not`, if the
/// build has no CUDA, the driver is missing or too old, or there is no GPU.
CudaCalls* cuda_calls(std::string& why_not);

/// The architectures that this build has code for, as `missing_cuda_code` takes them; empty in the
/// null back end.
std::string_view cuda_architectures();

}  // namespace hearth
