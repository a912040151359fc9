// The ordered list of libraries for attention; see libraries.h.
#pragma once

#include "gpu_kernels/kernels/attention_rows.h"
#include "gpu_kernels/libraries/libraries.h"

namespace hearth::HEARTH_GPU {

/// Attention with bf16 operands: q16, k16, v16 and, in backward, dout16 of the arguments, whose
/// rows have no gaps between heads. Forward writes out and log_sum. Backward reads them and writes
/// dq, dk and dv. All these are f32.
struct AttentionProblem {
  bool backward = false;
  const AttentionArguments& args;
};

/// Bounds: heads, kv_heads, head_dim, query rows, key rows. A library declines problems that need
/// more scratch.
using AttentionLibrary = LibraryFor<AttentionProblem, int64_t, int64_t, int64_t, int64_t, int64_t>;

/// The libraries of this build; the preferred library comes first.
LibraryList<AttentionLibrary> attention_libraries();

/// cuDNN, loaded at run time; the null twin in builds without its headers.
const AttentionLibrary& cudnn_library();

}  // namespace hearth::HEARTH_GPU
