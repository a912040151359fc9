// Attention on the host's side: checks, addresses, launches. Computed in bf16, q, k, v and dout are
// rounded to copies in the stream's scratch, and the tensor cores multiply those, by a library or by the
// kernels here.
#include <algorithm>

#include "gpu_kernels/gpu_stream.h"
#include "gpu_kernels/kernels/attention_rows.h"
#include "gpu_kernels/libraries/attention_libraries.h"
#include "gpu_kernels/ops/gpu_op_set.h"
#include "gpu_kernels/ops/op_scratch.h"
#include "gpu_kernels/ops/products.h"

namespace hearth::HEARTH_GPU {
namespace {

HeadMatrix heads_of(const ConstView& x, int64_t head_dim) {
  auto* data = const_cast<float*>(x.as<float>());
  const bool vectors =
      reinterpret_cast<uintptr_t>(data) % 16 == 0 && x.stride % 4 == 0 && head_dim % 4 == 0;
  return {data, x.stride, vectors};
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
  if (run_by_library(attention_libraries(), gpu, AttentionProblem{false, a})) return;
  attention_forward_bf16_on(gpu.handle(), a);
}

/// dq, dk and dv from the copies, out and log_sum.
void backward_of_rounded(GpuStream& gpu, AttentionArguments& a) {
  if (run_by_library(attention_libraries(), gpu, AttentionProblem{true, a})) return;
  a.delta = gpu.scratch().take<float>(int64_t{a.query_rows} * a.heads);
  attention_delta_bf16_on(gpu.handle(), a);
  attention_dq_bf16_on(gpu.handle(), a);
  attention_dkv_bf16_on(gpu.handle(), a);
}

/// The offsets lie in device memory, so the host cannot check their last elements.
AttentionArguments arguments(const AttentionShape& shape, const SequenceOffsets& offsets,
                             const ConstView& q, const ConstView& k, const ConstView& v,
                             const ConstView& out, const ConstView& log_sum) {
  const int64_t d = shape.head_dim;
  HEARTH_CHECK(d > 0 && d <= kLargestHead, "attention: heads of this size");
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

void attention_forward(Stream& stream, const AttentionShape& shape, const SequenceOffsets& offsets,
                       ConstView q, ConstView k, ConstView v, View out, View log_sum) {
  AttentionArguments a = arguments(shape, offsets, q, k, v, out, log_sum);
  GpuStream gpu = gpu_stream(stream);
  if (!is_rounded(shape)) return attention_forward_on(gpu.handle(), a);
  Scratch::Frame frame(gpu.scratch());
  round_inputs(gpu, q, k, v, a);
  forward_of_rounded(gpu, a);
}

void attention_backward(Stream& stream, const AttentionShape& shape, const SequenceOffsets& offsets,
                        ConstView dout, ConstView q, ConstView k, ConstView v, ConstView out,
                        ConstView log_sum, View dq, View dk, View dv) {
  AttentionArguments a = arguments(shape, offsets, q, k, v, out, log_sum);
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

}  // namespace

void add_attention(OpTable& ops) {
  ops.attention_forward.add(GpuOps::kName, attention_forward);
  ops.attention_backward.add(GpuOps::kName, attention_backward);
}

}  // namespace hearth::HEARTH_GPU
