// Launches kernels. Only *.cu and *.cuh files include this header.
//
// How to write a kernel. The file is kernels/<idea>.cu. It is compiled twice: by nvcc for the op
// set "cuda" (HEARTH_GPU is `gpu`), and by the host's compiler for "cuda-emulated"
// (`gpu_emulated`), where tests/support/cuda_emulator plays the device. Both compile the same text:
// * everything is in `namespace hearth::HEARTH_GPU`; the kernel itself (`__global__ void`) is in an
//   anonymous namespace in it. Headers without kernels (`*.h`) declare `void <idea>_on(void*
//   stream, ...)`. The .cu defines it by `launch`. The op's .cpp calls it; the host's compiler
//   compiles the .cpp in both cases, without any CUDA header;
// * a kernel takes plain data by value (larger than a few words: `const __grid_constant__`);
// * static shared memory is `__shared__ float x[N];`, dynamic is `shared_memory<T>()`. The emulator
//   fills both with 0xff bytes when a block starts;
// * grids have up to three dimensions, blocks one dimension of up to 1024 threads. Available are
//   __syncthreads (all threads of the block must reach the same call; none may have ended),
//   __syncwarp, __shfl_*_sync, __ballot_sync and other votes, atomics on integers, the usual float
//   functions and vector types. Add missing functions to tests/support/cuda_emulator;
// * instructions without a function (mma, ldmatrix, cp.async) are wrapped in kernels/mma.cuh and
//   kernels/async_copy.cuh. Nothing else tests __CUDACC__;
// * 16-byte accesses go through load_wide and store_wide (kernels/numbers.cuh);
// * no atomics on floats; the order of sums depends only on shapes.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#include "gpu_kernels/kernels/real_launch.cuh"
#else
#include "cuda_emulator/emulated_launch.h"
#endif

namespace hearth::HEARTH_GPU {

// Both branches above provide:
//   struct Grid: blocks, Grid(x, y = 1, z = 1) from int64_t, by implicit conversion;
//   template <class T> __device__ T* shared_memory(): the dynamic shared memory, 128-byte aligned;
//   void launch(kernel, Grid grid, int threads, size_t shared_bytes, void* stream, arguments...):
//     enqueues; if the launch is refused, raises a device error that stays (refuse_launch). Grids of
//     no blocks are a bug.

/// How many parts of size `part` cover n.
constexpr int64_t parts_over(int64_t n, int64_t part) { return (n + part - 1) / part; }

}  // namespace hearth::HEARTH_GPU
