// Kernels over many arrays at once: which of them a block of threads belongs to.
#pragma once

#include <cstdint>

#include "gpu_kernels/launch.h"

namespace hearth::HEARTH_GPU {

/// The run that `block` lies in: the last of `count` that begins at or before it. Runs are ordered by
/// `first_block`; those without blocks are never found, as the next begins at the same block.
template <class Run>
__device__ inline Run run_of_block(const Run* runs, int64_t count, int64_t block) {
  int64_t low = 0, high = count - 1;
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    if (runs[middle].first_block <= block) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return runs[low];
}

}  // namespace hearth::HEARTH_GPU
