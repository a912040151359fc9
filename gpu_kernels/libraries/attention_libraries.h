// The ordered list of libraries for attention; see libraries.h.
#pragma once

#include "gpu_kernels/kernels/attention_rows.h"
#include "gpu_kernels/libraries/libraries.h"

namespace hearth::HEARTH_GPU {

/// Attention with operands rounded to bf16: q16, k16, v16 of the arguments, whose rows are heads side by
/// side without gaps, and in backward dout16. Forward writes out and log_sum; backward reads them and
/// writes dq, dk and dv; all these are f32.
struct AttentionProblem {
  bool backward = false;
  const AttentionArguments& args;
};

/// The bounds of scratch are heads, kv_heads, head_dim, rows of queries and rows of keys. A library
/// declines a problem that would take more.
using AttentionLibrary = LibraryFor<AttentionProblem, int64_t, int64_t, int64_t, int64_t, int64_t>;

/// The libraries of this build, the preferred one first.
LibraryList<AttentionLibrary> attention_libraries();

/// cuDNN, searched for when the program runs; in builds without its headers the null twin.
const AttentionLibrary& cudnn_library();

}  // namespace hearth::HEARTH_GPU
