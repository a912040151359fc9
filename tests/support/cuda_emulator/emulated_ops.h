// The op set "cuda-emulated": the kernels of "cuda", run by the host.
#pragma once

#include "cuda_emulator/engine.h"
#include "ops/op_set.h"

namespace hearth::test {

const OpSet& emulated_ops();
/// The same under the name of the real one, for programs that look for that.
const OpSet& emulated_ops_as_cuda();

}  // namespace hearth::test
