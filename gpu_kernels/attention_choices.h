// Libraries for attention, in order of preference; see choices.h.
#pragma once

#include <span>
#include <string>

#include "gpu_kernels/attention_rows.h"
#include "gpu_kernels/choices.h"

namespace hearth::HEARTH_GPU {

/// Attention with operands rounded to bf16: q16, k16, v16 of the arguments, whose rows are heads side by
/// side without gaps, and in backward dout16. Forward writes out and log_sum; backward reads them and
/// writes dq, dk and dv; all these are f32.
struct AttentionProblem {
  bool backward = false;
  const AttentionArguments& args;
};

class AttentionChoice : public Choice {
 public:
  /// Why it does not take this; empty: it does.
  virtual std::string declines(GpuStream&, const AttentionProblem&) const = 0;
  /// Enqueues what `declines` did not decline. Memory comes from the stream's scratch.
  virtual void run(GpuStream&, const AttentionProblem&) const = 0;
  /// Of the scratch that it takes for up to so many rows of queries and of keys, at most. It declines
  /// what would take more.
  virtual size_t scratch_bytes(int64_t heads, int64_t kv_heads, int64_t head_dim, int64_t rows,
                               int64_t key_rows) const = 0;
};

/// Those of this build.
std::span<const AttentionChoice* const> attention_choices();

/// The largest of the choices' needs.
size_t attention_choice_bytes(int64_t heads, int64_t kv_heads, int64_t head_dim, int64_t rows,
                              int64_t key_rows);

/// Enqueues it if a library takes it; false: none does, and nothing was enqueued. Reasons are logged.
bool run_attention_by_choice(GpuStream& stream, const AttentionProblem& problem);

/// cuDNN, looked for when the program runs (gpu_kernels/cudnn, or no_cudnn in builds without its
/// headers).
const AttentionChoice& cudnn_choice();

}  // namespace hearth::HEARTH_GPU
