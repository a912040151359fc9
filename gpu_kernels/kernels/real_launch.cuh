// Launches by the CUDA runtime.
#pragma once

#include <cuda_runtime.h>

#include "base/error.h"
#include "device/refused_launch.h"

namespace hearth::HEARTH_GPU {

/// Remembers who launches, for error lines.
struct Grid {
  dim3 blocks;
  const char* function;
  Grid(int64_t x, int64_t y = 1, int64_t z = 1, const char* f = __builtin_FUNCTION())
      : blocks(static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z)),
        function(f) {
    HEARTH_CHECK(x > 0 && y > 0 && z > 0 && x <= INT32_MAX && y <= 65535 && z <= 65535,
                 "launch: blocks");
  }
};

template <class T>
__device__ inline T* shared_memory() {
  extern __shared__ __align__(128) uint4 hearth_shared_memory[];
  return reinterpret_cast<T*>(hearth_shared_memory);
}

template <class... P, class... A>
void launch(void (*kernel)(P...), const Grid& grid, int threads, size_t shared_bytes, void* stream,
            A... arguments) {
  constexpr size_t kWithoutAsking = 48 << 10;
  if (shared_bytes > kWithoutAsking) {
    const cudaError_t code = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
    if (code != cudaSuccess) refuse_launch(stream, grid.function, code);
  }
  kernel<<<grid.blocks, static_cast<unsigned>(threads), shared_bytes,
           static_cast<cudaStream_t>(stream)>>>(arguments...);
  const cudaError_t code = cudaGetLastError();
  if (code != cudaSuccess) refuse_launch(stream, grid.function, code);
}

}  // namespace hearth::HEARTH_GPU
