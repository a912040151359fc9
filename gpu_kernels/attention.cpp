// Attention on the host's side: checks, addresses, launches. Computed in bf16, q, k, v and dout are
// rounded to copies in the stream's scratch, and the tensor cores multiply those, by a library or by the
// kernels here.
#include <algorithm>

#include "gpu_kernels/attention_choices.h"
#include "gpu_kernels/attention_rows.h"
#include "gpu_kernels/gpu_op_set.h"
#include "gpu_kernels/gpu_stream.h"
#include "gpu_kernels/products.h"

namespace hearth::HEARTH_GPU {
namespace {

bool has_shape(const ConstView& x, int64_t rows, int64_t cols) {
  return x.rows == rows && x.cols == cols;
}

HeadMatrix heads_of(const ConstView& x, int64_t head_dim) {
  auto* data = const_cast<float*>(x.as<float>());
  const bool vectors =
      reinterpret_cast<uintptr_t>(data) % 16 == 0 && x.stride % 4 == 0 && head_dim % 4 == 0;
  return {data, x.stride, vectors};
}

/// Whether the kernels for rounded operands take it; what they do not is computed in f32.
bool is_rounded(const AttentionShape& shape) {
  return shape.compute == Compute::bf16 && shape.head_dim % 8 == 0 && shape.scale > 0;
}

/// Enqueues the copy.
RoundedHeads rounded(GpuStream& gpu, const ConstView& x) {
  auto* const copy = gpu.scratch().take<uint16_t>(x.rows * x.cols);
  PrepareArgs args;
  args.from = x.as<float>();
  args.from_stride = x.stride;
  args.to = copy;
  args.to_stride = x.cols;
  args.stored = Stored::bf16;
  args.rows = x.rows;
  args.columns = x.cols;
  prepare_rows_on(gpu.handle(), args);
  return {copy, x.cols};
}

void round_inputs(GpuStream& gpu, const ConstView& q, const ConstView& k, const ConstView& v,
                  AttentionArguments& a) {
  a.q16 = rounded(gpu, q);
  a.k16 = rounded(gpu, k);
  a.v16 = rounded(gpu, v);
}

/// out and log_sum from the copies.
void forward_of_rounded(GpuStream& gpu, const AttentionArguments& a) {
  if (run_attention_by_choice(gpu, {false, a})) return;
  attention_forward_bf16_on(gpu.handle(), a);
}

/// dq, dk and dv from the copies, out and log_sum.
void backward_of_rounded(GpuStream& gpu, AttentionArguments& a) {
  if (run_attention_by_choice(gpu, {true, a})) return;
  a.delta = gpu.scratch().take<float>(int64_t{a.query_rows} * a.heads);
  attention_delta_bf16_on(gpu.handle(), a);
  attention_dq_bf16_on(gpu.handle(), a);
  attention_dkv_bf16_on(gpu.handle(), a);
}

/// What offsets say lies in device memory, so their last elements are the caller's word.
AttentionArguments arguments(const AttentionShape& shape, const SequenceOffsets& offsets,
                             const ConstView& q, const ConstView& k, const ConstView& v,
                             const ConstView& out, const ConstView& log_sum) {
  const int64_t d = shape.head_dim, width = shape.heads * d, kv_width = shape.kv_heads * d;
  HEARTH_CHECK(shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0, "attention: heads");
  HEARTH_CHECK(d > 0 && d <= kLargestHead, "attention: heads of this size");
  HEARTH_CHECK(has_shape(q, out.rows, width) && out.cols == width && v.rows == k.rows &&
                   k.cols == kv_width && v.cols == kv_width &&
                   has_shape(log_sum, q.rows, shape.heads),
               "attention: shapes");
  HEARTH_CHECK(offsets.count() >= 0 && has_shape(offsets.query, 1, offsets.count() + 1) &&
                   has_shape(offsets.key, 1, offsets.count() + 1),
               "attention: offsets");
  AttentionArguments a;
  a.query_offsets = offsets.query.as<int32_t>();
  a.key_offsets = offsets.key.as<int32_t>();
  a.sequences = static_cast<int>(offsets.count());
  a.query_rows = static_cast<int>(q.rows);
  a.key_rows = static_cast<int>(k.rows);
  a.heads = static_cast<int>(shape.heads);
  a.kv_heads = static_cast<int>(shape.kv_heads);
  a.head_dim = static_cast<int>(d);
  a.window = static_cast<int>(shape.window);
  a.scale = static_cast<float>(shape.scale);
  a.q = heads_of(q, d);
  a.k = heads_of(k, d);
  a.v = heads_of(v, d);
  a.out = heads_of(out, d);
  a.log_sum = heads_of(log_sum, 1);
  return a;
}

}  // namespace

void GpuOps::attention_forward(Stream& stream, const AttentionShape& shape,
                               const SequenceOffsets& offsets, ConstView q, ConstView k,
                               ConstView v, View out, View log_sum) const {
  AttentionArguments a = arguments(shape, offsets, q, k, v, out, log_sum);
  GpuStream gpu = gpu_stream(stream);
  if (!is_rounded(shape)) return attention_forward_on(gpu.handle(), a);
  Scratch::Frame frame(gpu.scratch());
  round_inputs(gpu, q, k, v, a);
  forward_of_rounded(gpu, a);
}

void GpuOps::attention_backward(Stream& stream, const AttentionShape& shape,
                                const SequenceOffsets& offsets, ConstView dout, ConstView q,
                                ConstView k, ConstView v, ConstView out, ConstView log_sum, View dq,
                                View dk, View dv) const {
  AttentionArguments a = arguments(shape, offsets, q, k, v, out, log_sum);
  HEARTH_CHECK(has_shape(dout, q.rows, q.cols) && has_shape(dq, q.rows, q.cols) &&
                   has_shape(dk, k.rows, k.cols) && has_shape(dv, v.rows, v.cols),
               "attention_backward: shapes");
  GpuStream gpu = gpu_stream(stream);
  Scratch::Frame frame(gpu.scratch());
  a.dout = heads_of(dout, shape.head_dim);
  a.dq = heads_of(dq, shape.head_dim);
  a.dk = heads_of(dk, shape.head_dim);
  a.dv = heads_of(dv, shape.head_dim);
  if (is_rounded(shape)) {
    round_inputs(gpu, q, k, v, a);
    a.dout16 = rounded(gpu, dout);
    return backward_of_rounded(gpu, a);
  }
  a.delta = gpu.scratch().take<float>(q.rows * shape.heads);
  attention_delta_on(gpu.handle(), a);
  attention_dq_on(gpu.handle(), a);
  attention_dkv_on(gpu.handle(), a);
}

ScratchNeed GpuOps::attention_scratch(const AttentionShape& shape, int64_t tokens,
                                      int64_t longest) const {
  size_t bytes = sizeof(float) * static_cast<size_t>(tokens * shape.heads) + kArenaAlignment;
  if (is_rounded(shape)) {
    const int64_t keys = std::max(tokens, longest);
    bytes += 2 * operand_bytes(tokens, shape.heads * shape.head_dim, sizeof(uint16_t)) +
             2 * operand_bytes(keys, shape.kv_heads * shape.head_dim, sizeof(uint16_t)) +
             attention_choice_bytes(shape.heads, shape.kv_heads, shape.head_dim, tokens, keys);
  }
  return {bytes, 0};
}

}  // namespace hearth::HEARTH_GPU
