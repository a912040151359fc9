#include "gpu_kernels/kernels/attention_packing.h"

#include <algorithm>
#include <bit>

namespace hearth::HEARTH_GPU {

AttentionPacking take_packing(Scratch& scratch, int64_t entries) {
  AttentionPacking to;
  to.entries = entries;
  to.queries = scratch.take<int32_t>(entries);
  to.keys = scratch.take<int32_t>(entries);
  to.query_begin = scratch.take<int64_t>(entries + 1);
  to.key_begin = scratch.take<int64_t>(entries + 1);
  to.sum_begin = scratch.take<int64_t>(entries + 1);
  return to;
}

size_t packing_bytes(int64_t entries) {
  const auto n = static_cast<size_t>(entries);
  return 2 * align_up(n * sizeof(int32_t)) + 3 * align_up((n + 1) * sizeof(int64_t)) +
         kArenaAlignment;
}

int64_t coarse_rows(int64_t rows) {
  const auto floor = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(rows)));
  const int64_t step = std::max<int64_t>(128, floor / 8);
  return (rows + step - 1) / step * step;
}

int64_t coarse_count(int64_t sequences) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(sequences)));
}

}  // namespace hearth::HEARTH_GPU
