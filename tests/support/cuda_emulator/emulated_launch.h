// The content of gpu_kernels/launch.h for kernels that the host compiler compiles.
#pragma once

#include "base/error.h"
#include "cuda_emulator/language.h"
#include "cuda_emulator/tensor_core.h"

namespace hearth::cuda_emulator {

/// Runs the grid at once if `stream` is null; else queues it on this stream of a fake CUDA runtime.
void enqueue_grid(void* stream, const GridShape& shape, std::function<void()> kernel);

}  // namespace hearth::cuda_emulator

namespace hearth::HEARTH_GPU {

using cuda_emulator::emulate_commit_copies;
using cuda_emulator::emulate_copy_async;
using cuda_emulator::emulate_ldmatrix_x4;
using cuda_emulator::emulate_mma_m16n8k16;
using cuda_emulator::emulate_wait_copies;

struct Grid {
  cuda_emulator::Index blocks;
  const char* function;
  Grid(int64_t x, int64_t y = 1, int64_t z = 1, const char* f = __builtin_FUNCTION())
      : blocks{static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z)},
        function(f) {
    HEARTH_CHECK(x > 0 && y > 0 && z > 0 && x <= INT32_MAX && y <= 65535 && z <= 65535,
                 "launch: blocks");
  }
};

template <class T>
T* shared_memory() {
  return reinterpret_cast<T*>(cuda_emulator::dynamic_shared);
}

template <class... P, class... A>
void launch(void (*kernel)(P...), const Grid& grid, int threads, size_t shared_bytes, void* stream,
            A... arguments) {
  constexpr size_t kLargestShared = 227 << 10;  // limit of an sm_90 block
  HEARTH_CHECK(shared_bytes <= kLargestShared, "launch: shared memory");
  cuda_emulator::enqueue_grid(
      stream, {grid.blocks, static_cast<unsigned>(threads), shared_bytes, grid.function},
      [=] { kernel(arguments...); });
}

}  // namespace hearth::HEARTH_GPU
