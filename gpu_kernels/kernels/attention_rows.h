// What attention's kernels take, and their launches.
#pragma once

#include <cstdint>

namespace hearth::HEARTH_GPU {

/// Rows of heads side by side, in device memory.
struct HeadMatrix {
  float* data = nullptr;
  int64_t stride = 0;    // floats from one row to the next
  bool vectors = false;  // every head of every row begins at a multiple of 16 bytes
};

/// A copy of such rows in bf16: what the kernels on the tensor cores read. Each head of each row
/// begins at a multiple of 16 bytes.
struct RoundedHeads {
  const uint16_t* data = nullptr;
  int64_t stride = 0;  // elements
};

struct AttentionArguments {
  const int32_t* query_offsets = nullptr;  // [sequences + 1]
  const int32_t* key_offsets = nullptr;
  int sequences = 0;
  int query_rows = 0, key_rows = 0;  // rows of the tensors: at least what the offsets end at
  int heads = 0, kv_heads = 0, head_dim = 0, window = 0;
  float scale = 0;
  HeadMatrix q, k, v, out;
  HeadMatrix log_sum;           // a column a head
  HeadMatrix dout, dq, dk, dv;  // of the backward
  float* delta = nullptr;       // [query_rows, heads]: <dout, out>, of the backward
  RoundedHeads q16, k16, v16,
      dout16;  // of the kernels on the tensor cores, instead of q, k, v, dout
};

/// The largest head of these kernels. Of those on the tensor cores it is a multiple of 8.
constexpr int kLargestHead = 256;

// All of them enqueue and return. Nothing is done for no rows.
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
