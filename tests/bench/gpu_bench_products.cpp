// Dense maps, the loss and attention: what is bound by multiplications.
#include "gpu_bench.h"

namespace hearth::bench {
namespace {

const char* text(Compute compute) { return compute == Compute::bf16 ? "bf16" : "f32"; }

void linear(const GpuTarget& target, Compute compute, int64_t rows, int64_t out, int64_t in) {
  GpuBench b(target, target.ops.linear_scratch(rows, out, in, 0));
  const DType stored = compute == Compute::bf16 ? DType::bf16 : DType::f32;
  const View w = b.random(stored, out, in, 0.02f), dw = b.random(DType::f32, out, in);
  const View x = b.random(DType::f32, rows, in), y = b.random(DType::f32, rows, out);
  const LinearView map{w, {}, compute};
  const std::string shape = shape_text({rows, out, in});
  const double flops = 2.0 * static_cast<double>(rows * out * in);
  const auto name = [&](const char* form) {
    return std::string("linear ") + form + " " + text(compute);
  };
  b.report_flops(name("forward"), shape, flops,
                 [&] { b.ops().linear_forward(b.stream(), x, map, y); });
  b.report_flops(name("dgrad"), shape, flops,
                 [&] { b.ops().linear_dgrad(b.stream(), y, map, x, false); });
  b.report_flops(name("wgrad"), shape, flops,
                 [&] { b.ops().linear_wgrad(b.stream(), y, x, map, {.weight = dw}); });
}

void loss(const GpuTarget& target, Compute compute, int64_t tokens, int64_t hidden,
          int64_t vocabulary) {
  GpuBench b(target, target.ops.cross_entropy_scratch(tokens, hidden, vocabulary, 0));
  const DType stored = compute == Compute::bf16 ? DType::bf16 : DType::f32;
  const View w = b.random(stored, vocabulary, hidden, 0.02f),
             dw = b.random(DType::f32, vocabulary, hidden);
  const View x = b.random(DType::f32, tokens, hidden), dx = b.random(DType::f32, tokens, hidden),
             sum = b.random(DType::f64, 1, 1);
  std::vector<int32_t> of_token(static_cast<size_t>(tokens));
  for (size_t t = 0; t < of_token.size(); ++t) {
    of_token[t] = static_cast<int32_t>(t * 7919 % static_cast<size_t>(vocabulary));
  }
  const View labels = b.integers(of_token);
  const LinearView head{w, {}, compute};
  const double a_product = 2.0 * static_cast<double>(tokens * hidden * vocabulary);
  const std::string shape = shape_text({tokens, hidden, vocabulary});
  b.report_flops(
      std::string("cross_entropy with gradients ") + text(compute), shape, 3 * a_product,
      [&] { b.ops().cross_entropy(b.stream(), x, head, labels, 1e-4, sum, dx, {.weight = dw}); });
}

void attention(const GpuTarget& target, Compute compute, int64_t sequences, int64_t length,
               int64_t heads, int64_t kv_heads, int64_t d) {
  const AttentionShape shape = {
      .heads = heads, .kv_heads = kv_heads, .head_dim = d, .scale = 0.08, .compute = compute};
  const int64_t tokens = sequences * length;
  GpuBench b(target, target.ops.attention_scratch(shape, tokens, length));
  std::vector<int32_t> begin;
  for (int64_t n = 0; n <= sequences; ++n) begin.push_back(static_cast<int32_t>(n * length));
  const View at = b.integers(begin);
  const SequenceOffsets offsets{at, at};
  const auto rows = [&](int64_t h) { return b.random(DType::f32, tokens, h * d); };
  const View q = rows(heads), k = rows(kv_heads), v = rows(kv_heads), out = rows(heads),
             dout = rows(heads), dq = rows(heads), dk = rows(kv_heads), dv = rows(kv_heads),
             log_sum = b.random(DType::f32, tokens, heads);
  // Of a causal attention: half of the scores; the backward makes five products of the forward's two.
  const double flops = 2.0 * static_cast<double>(tokens * length * heads * d);
  const std::string sizes = shape_text({sequences, length, heads, kv_heads, d});
  b.report_flops(std::string("attention_forward ") + text(compute), sizes, flops, [&] {
    b.ops().attention_forward(b.stream(), shape, offsets, q, k, v, out, log_sum);
  });
  b.report_flops(std::string("attention_backward ") + text(compute), sizes, 2.5 * flops, [&] {
    b.ops().attention_backward(b.stream(), shape, offsets, dout, q, k, v, out, log_sum, dq, dk, dv);
  });
}

}  // namespace

void bench_products(const GpuTarget& target) {
  for (const Compute compute : {Compute::bf16, Compute::f32}) {
    if (target.small) {
      linear(target, compute, 64, 48, 32);
      loss(target, compute, 64, 32, 100);
      continue;
    }
    linear(target, compute, 8192, 4096, 2048);
    linear(target, compute, 8192, 2048, 4096);
    loss(target, compute, 4096, 2048, 151936);
  }
}

void bench_attention(const GpuTarget& target) {
  for (const Compute compute : {Compute::bf16, Compute::f32}) {
    if (target.small) {
      attention(target, compute, 2, 40, 4, 2, 16);
      continue;
    }
    attention(target, compute, 1, 8192, 32, 4, 128);
    attention(target, compute, 4, 2048, 32, 4, 128);
    attention(target, compute, 4, 2048, 16, 16, 128);
    attention(target, compute, 4, 2048, 32, 8, 64);
  }
}

}  // namespace hearth::bench
