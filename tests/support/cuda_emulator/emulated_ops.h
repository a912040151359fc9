// The op set "cuda-emulated": the kernels of "cuda", run by the host.
#pragma once

#include "cuda_emulator/engine.h"
#include "ops/op_set.h"

namespace hearth::test {

const OpSet& emulated_ops();

}  // namespace hearth::test
