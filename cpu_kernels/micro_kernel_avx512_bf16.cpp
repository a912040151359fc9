// 14 rows by 32 columns, as in f32, with dot products of pairs of bf16 (AVX512_BF16).
#if defined(__GNUC__) && !defined(__clang__)
// As in micro_kernel_avx512.cpp.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include <algorithm>
#include <cstring>

#include "cpu_kernels/micro_kernel.h"

#define HEARTH_TARGET __attribute__((target("avx512f,avx512bw,avx512bf16")))

#include "cpu_kernels/vector_avx512_bf16.h"

namespace hearth {
namespace pairs {

using Vector = PairVector;

#include "cpu_kernels/micro_kernel_body.h"
#include "cpu_kernels/packing_body.h"

}  // namespace pairs

const MicroKernel kAvx512Bf16Kernel = {
    "avx512_bf16",       14, 32, 16, pairs::kDepth, 384, 256, pairs::pack_left, pairs::pack_right,
    pairs::run_strip<14>};

}  // namespace hearth
