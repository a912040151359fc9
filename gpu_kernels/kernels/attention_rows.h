// Arguments and launches of the attention kernels.
#pragma once

#include <cstdint>

namespace hearth::HEARTH_GPU {

/// Rows [heads * d] in device memory.
struct HeadMatrix {
  float* data = nullptr;
  int64_t stride = 0;    // floats from one row to the next
  bool vectors = false;  // every head of every row is 16-byte aligned
};

/// A bf16 copy of such rows, for the tensor-core kernels. Every head of every row is 16-byte
/// aligned.
struct RoundedHeads {
  const uint16_t* data = nullptr;
  int64_t stride = 0;  // elements
};

struct AttentionArguments {
  const int32_t* query_offsets = nullptr;  // [sequences + 1]
  const int32_t* key_offsets = nullptr;
  int sequences = 0;
  int query_rows = 0, key_rows = 0;  // of the tensors; at least the last offsets
  int heads = 0, kv_heads = 0, head_dim = 0, window = 0;
  float scale = 0;
  HeadMatrix q, k, v, out;
  HeadMatrix log_sum;           // one column per head
  HeadMatrix dout, dq, dk, dv;  // of the backward
  float* delta = nullptr;       // [query_rows, heads]: <dout, out>, of the backward
  RoundedHeads q16, k16, v16,
      dout16;  // for tensor-core kernels, instead of q, k, v, dout
};

/// The largest head size. Tensor-core kernels also need a multiple of 8.
constexpr int kLargestHead = 256;

// All functions enqueue and return. They do nothing if there are no rows.
void attention_forward_on(void* stream, const AttentionArguments& a);
void attention_delta_on(void* stream, const AttentionArguments& a);
void attention_dq_on(void* stream, const AttentionArguments& a);
void attention_dkv_on(void* stream, const AttentionArguments& a);
// The same on the tensor cores, for a positive scale.
void attention_forward_bf16_on(void* stream, const AttentionArguments& a);
void attention_delta_bf16_on(void* stream, const AttentionArguments& a);
void attention_dq_bf16_on(void* stream, const AttentionArguments& a);
void attention_dkv_bf16_on(void* stream, const AttentionArguments& a);

}  // namespace hearth::HEARTH_GPU
