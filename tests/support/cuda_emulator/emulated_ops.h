// The op set "cuda-emulated": the kernels of "cuda", run on the host.
#pragma once

#include "cuda_emulator/engine.h"
#include "ops/op_set.h"

namespace hearth::test {

const OpSet& emulated_ops();
/// The same op set under the name "cuda", for programs that look it up.
const OpSet& emulated_ops_as_cuda();

}  // namespace hearth::test
