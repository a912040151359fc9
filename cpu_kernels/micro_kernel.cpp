#include "cpu_kernels/micro_kernel.h"

#include "cpu_kernels/onednn_shim.h"

namespace hearth {

const MicroKernel& micro_kernel() {
  static const MicroKernel& kernel = onednn_has_avx512() ? kAvx512Kernel : kAvx2Kernel;
  return kernel;
}

}  // namespace hearth
