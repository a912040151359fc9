// The CUDA back end of the op set: kernels of its own, on streams of CUDA devices.
#pragma once

#include <string>

namespace hearth {

/// Makes the op set "cuda" known to `find_op_set`, where this build has it; empty then, else the
/// reason in words. Needs neither a driver nor a GPU until an op runs.
///
/// Activations are f32, products f32 (no TF32) or bf16 with f32 sums. Views and scratch are device
/// memory, streams must be those of a cuda device, and ops only enqueue: what they read and write
/// stays as it is until the stream gets there. Every sum is taken in one fixed order, so bits
/// repeat; the order is another one than that of "cpu".
std::string register_cuda_ops();

}  // namespace hearth
