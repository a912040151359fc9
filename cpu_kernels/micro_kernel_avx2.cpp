// 6 rows by 16 columns: 12 accumulators, two registers of B and one of A of the 16 there are.
#include <algorithm>
#include <cstring>

#include "cpu_kernels/micro_kernel.h"

#define HEARTH_TARGET

#include "cpu_kernels/vector_avx2.h"

namespace hearth {

#include "cpu_kernels/micro_kernel_body.h"
#include "cpu_kernels/packing_body.h"

const MicroKernel kAvx2Kernel = {"avx2", 6,   16,        8,          kDepth,
                                 256,    384, pack_left, pack_right, run_strip<6>};

}  // namespace hearth
