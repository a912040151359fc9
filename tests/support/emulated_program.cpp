// Makes the program of `tools/main.cpp` one that finds a GPU on any machine: a CUDA runtime whose
// memory the host cannot touch and whose work runs late, and the kernels of gpu_kernels, run by the
// emulator. Slow, and right to the last rule of the fake: for tests of whole runs.
#include "cuda_emulator/emulated_ops.h"
#include "device/cuda_runtime.h"
#include "gpu_kernels/cuda_ops.h"
#include "ops/registry.h"
#include "support/fake_cuda.h"

namespace hearth {

std::string register_cuda_ops() {
  register_op_set(test::emulated_ops_as_cuda());
  return {};
}

const OpSet& planned_cuda_ops() { return test::emulated_ops_as_cuda(); }

CudaCalls* cuda_calls(std::string&) {
  static test::FakeCuda runtime;
  return &runtime;
}

std::string_view cuda_architectures() { return {}; }

}  // namespace hearth
