// The GPU that op tests run on. Tensors of tests then lie in pinned memory, which host and GPU reach
// by the same address, and launches block (CUDA_LAUNCH_BLOCKING), so that tests read results as they
// do on the host. Whole training steps in device memory are the parity tests' part.
#pragma once

#include <string>

#include "device/device.h"

namespace hearth::test {

/// Makes the op set "cuda" one of the tests' back ends. Empty, or why not: this build or this machine
/// has none. The first call counts.
const std::string& register_gpu();

/// The device, null where `register_gpu` found none.
Device* test_gpu();

}  // namespace hearth::test
