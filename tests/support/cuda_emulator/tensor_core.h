// mma, ldmatrix and cp.async as functions, with PTX's fragment layouts (see
// gpu_kernels/kernels/mma.cuh and async_copy.cuh).
#pragma once

#include <cstdint>

namespace hearth::cuda_emulator {

void emulate_mma_m16n8k16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
void emulate_ldmatrix_x4(uint32_t (&x)[4], const void* shared_row, bool transposed);

/// The target holds canaries until the thread waits for the copy; only then do the bytes arrive.
void emulate_copy_async(void* shared, const void* global, int bytes, int valid_bytes);
void emulate_commit_copies();
void emulate_wait_copies(int pending);

}  // namespace hearth::cuda_emulator
