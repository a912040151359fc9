// Lengths and beginnings of packed sequences for libraries.
#include "gpu_kernels/kernels/attention_packing.h"
#include "gpu_kernels/launch.h"

namespace hearth::HEARTH_GPU {
namespace {

constexpr int kThreads = 128;

/// A thread an entry, and one for the end of the last.
__global__ void __launch_bounds__(kThreads)
    pack_sequences_kernel(const __grid_constant__ AttentionArguments a,
                          const __grid_constant__ AttentionPacking to) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i > to.entries) return;
  const int64_t n = i < a.sequences ? i : a.sequences;  // what is not there begins at the end
  const int64_t query = a.query_offsets[n], key = a.key_offsets[n];
  to.query_begin[i] = query * a.q16.stride;
  to.key_begin[i] = key * a.k16.stride;
  to.sum_begin[i] = query * a.log_sum.stride;
  if (i == to.entries) return;
  const bool is_there = i < a.sequences;
  to.queries[i] = is_there ? static_cast<int32_t>(a.query_offsets[n + 1] - query) : 0;
  to.keys[i] = is_there ? static_cast<int32_t>(a.key_offsets[n + 1] - key) : 0;
}

}  // namespace

void pack_sequences_on(void* stream, const AttentionArguments& a, const AttentionPacking& to) {
  launch(pack_sequences_kernel, parts_over(to.entries + 1, kThreads), kThreads, 0, stream, a, to);
}

}  // namespace hearth::HEARTH_GPU
