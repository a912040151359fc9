// The GPU of op tests. Test tensors are in pinned memory, at the same address for host and GPU, and
// launches block (CUDA_LAUNCH_BLOCKING). So tests read results as on the host. The parity tests
// cover whole training steps in device memory.
#pragma once

#include <string>

#include "device/device.h"

namespace hearth::test {

/// Registers the op set "cuda" for tests. Returns an empty text, or the reason why this build or
/// machine has none. Later calls return the first result.
const std::string& register_gpu();

/// The device; null if `register_gpu` found none.
Device* test_gpu();

}  // namespace hearth::test
