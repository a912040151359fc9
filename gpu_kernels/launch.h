// Starting kernels, and what a kernel file needs. Included by *.cu and *.cuh alone.
//
// How a kernel is written. The file is kernels/<idea>.cu; it is compiled twice: by nvcc for the op set
// "cuda" (HEARTH_GPU is `gpu`), and by the compiler of the host for "cuda-emulated"
// (`gpu_emulated`), where tests/support/cuda_emulator plays the device. Both compile the same text:
// * everything lives in `namespace hearth::HEARTH_GPU`; the kernel itself (`__global__ void`) in an
//   anonymous namespace in it. Headers without kernels (`*.h`) declare `void <idea>_on(void* stream,
//   ...)`, which the .cu defines by `launch`, and which the op's .cpp calls: that one is compiled by
//   the host's compiler in either case and sees nothing of CUDA;
// * a kernel takes plain data by value (larger than a few words: `const __grid_constant__`);
// * static shared memory is `__shared__ float x[N];`, dynamic is `shared_memory<T>()`; both are bytes
//   0xff when an emulated block starts;
// * grids have up to three dimensions, blocks one, of up to 1024 threads. There are __syncthreads
//   (every thread of the block must come to the same one, none may have ended), __syncwarp,
//   __shfl_*_sync, __ballot_sync and other votes, atomics on integers, the usual functions of floats,
//   vector types. What is missing is added to tests/support/cuda_emulator;
// * instructions without a function (mma, ldmatrix, cp.async) are wrapped in kernels/mma.cuh and
//   kernels/async_copy.cuh. Nothing else asks for __CUDACC__;
// * 16-byte accesses go through load_wide and store_wide (kernels/numbers.cuh);
// * no atomics on floats and no order of sums that depends on anything but shapes.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#include "gpu_kernels/kernels/real_launch.cuh"
#else
#include "cuda_emulator/emulated_launch.h"
#endif

namespace hearth::HEARTH_GPU {

// Both give:
//   struct Grid: blocks, Grid(x, y = 1, z = 1) from int64_t, by implicit conversion;
//   template <class T> __device__ T* shared_memory(): the dynamic shared memory, 128-byte aligned;
//   void launch(kernel, Grid grid, int threads, size_t shared_bytes, void* stream, arguments...):
//     enqueues; raises a device error if the launch is refused. Grids of no blocks are a bug.

/// Whole parts of `part` that cover n.
constexpr int64_t parts_over(int64_t n, int64_t part) { return (n + part - 1) / part; }

}  // namespace hearth::HEARTH_GPU
