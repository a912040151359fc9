// 14 rows by 32 columns: 28 accumulators, two registers of B and one of A of the 32 there are.
#if defined(__GNUC__) && !defined(__clang__)
// gcc 12 takes its own headers' undefined vectors, which are masked out, for a mistake (PR 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"  // at -O1
#endif

#include <algorithm>
#include <cstring>

#include "cpu_kernels/micro_kernel.h"

#define HEARTH_TARGET __attribute__((target("avx512f")))

#include "cpu_kernels/vector_avx512.h"

namespace hearth {

#include "cpu_kernels/micro_kernel_body.h"
#include "cpu_kernels/packing_body.h"

const MicroKernel kAvx512Kernel = {"avx512", 14,  32,        16,         kDepth,
                                   256,      384, pack_left, pack_right, run_strip<14>};

}  // namespace hearth
