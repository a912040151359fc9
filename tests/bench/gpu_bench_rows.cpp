// Ops that move memory and compute little. Bytes are those that must move: each tensor read or
// written once.
#include "gpu_bench.h"

namespace hearth::bench {
namespace {

constexpr double kF32 = 4, kBf16 = 2;

void elementwise(GpuBench& b, int64_t tokens, int64_t width) {
  const double n = static_cast<double>(tokens * width);
  const std::string shape = shape_text({tokens, width});
  const OpSet& ops = b.ops();
  Stream& s = b.stream();
  const View x = b.random(DType::f32, tokens, width), y = b.random(DType::f32, tokens, width),
             z = b.random(DType::f32, tokens, width);
  const View weight = b.random(DType::f32, 1, width), dweight = b.random(DType::f32, 1, width),
             rstd = b.random(DType::f32, 1, tokens);
  const View rounded = b.random(DType::bf16, tokens, width),
             logit = b.random(DType::f32, 1, tokens);
  b.report_bytes("rmsnorm_forward", shape, 2 * kF32 * n,
                 [&] { ops.rmsnorm_forward(s, x, weight, 1e-6, y, rstd); });
  b.report_bytes("rmsnorm_backward", shape, 3 * kF32 * n,
                 [&] { ops.rmsnorm_backward(s, y, x, weight, rstd, z, dweight); });
  b.report_bytes("add", shape, 3 * kF32 * n, [&] { ops.add(s, x, y, z); });
  b.report_bytes("cast to bf16", shape, (kF32 + kBf16) * n, [&] { ops.cast(s, x, rounded); });
  b.report_bytes("swiglu_forward", shape, 3 * kF32 * n, [&] { ops.swiglu_forward(s, x, y, z); });
  const View gate = b.random(DType::f32, tokens, width), up = b.random(DType::f32, tokens, width);
  b.report_bytes("swiglu_backward", shape, 6 * kF32 * n,
                 [&] { ops.swiglu_backward(s, x, gate, up, z); });
  b.report_bytes("sigmoid_gate_forward", shape, 2 * kF32 * n,
                 [&] { ops.sigmoid_gate_forward(s, logit, x, y); });
}

void rope(GpuBench& b, int64_t tokens, int64_t heads, int64_t d) {
  std::vector<int32_t> at(static_cast<size_t>(tokens));
  for (size_t t = 0; t < at.size(); ++t) at[t] = static_cast<int32_t>(t);
  const View positions = b.integers(at), x = b.random(DType::f32, tokens, heads * d);
  const View cosine = b.random(DType::f32, tokens, d / 2),
             sine = b.random(DType::f32, tokens, d / 2);
  b.report_bytes(
      "rope", shape_text({tokens, heads, d}),
      2 * kF32 * static_cast<double>(tokens * heads * d) + kF32 * static_cast<double>(tokens * d),
      [&] { b.ops().rope(b.stream(), x, heads, positions, cosine, sine, false); });
}

void embedding(GpuBench& b, int64_t tokens, int64_t width, int64_t vocabulary) {
  std::vector<int32_t> ids(static_cast<size_t>(tokens));
  for (size_t t = 0; t < ids.size(); ++t) {
    ids[t] = static_cast<int32_t>(t * 7919 % static_cast<size_t>(vocabulary));
  }
  const View id = b.integers(ids), table = b.random(DType::bf16, vocabulary, width),
             out = b.random(DType::f32, tokens, width),
             gradient = b.random(DType::f32, vocabulary, width);
  const double n = static_cast<double>(tokens * width);
  const std::string shape = shape_text({tokens, width});
  b.report_bytes("embedding_forward", shape, (kBf16 + kF32) * n,
                 [&] { b.ops().embedding_forward(b.stream(), id, table, out); });
  b.report_bytes("embedding_backward", shape, 3 * kF32 * n,
                 [&] { b.ops().embedding_backward(b.stream(), id, out, -1, gradient); });
}

void routing(GpuBench& b, int64_t tokens, int64_t width, int64_t experts, int64_t k) {
  const OpSet& ops = b.ops();
  Stream& s = b.stream();
  const int64_t rows = tokens * k;
  const View logits = b.random(DType::f32, tokens, experts),
             probs = b.random(DType::f32, tokens, experts),
             weight = b.random(DType::f32, tokens, k), x = b.random(DType::f32, tokens, width),
             out = b.random(DType::f32, tokens, width), routed = b.random(DType::f32, rows, width);
  const auto ints = [&](int64_t r, int64_t c) {
    View view = b.integers(std::vector<int32_t>(static_cast<size_t>(r * c)));
    return view.reshape(r, c);
  };
  const View choice = ints(tokens, k), offsets = ints(1, experts + 1), source = ints(1, rows),
             row_of = ints(tokens, k);
  const std::string shape = shape_text({tokens, width, experts, k});
  const double t = static_cast<double>(tokens), r = static_cast<double>(rows),
               w = static_cast<double>(width), e = static_cast<double>(experts);
  b.report_bytes("router_forward", shape, kF32 * (2 * t * e + 2 * r),
                 [&] { ops.router_forward(s, logits, true, probs, choice, weight); });
  b.report_bytes("route", shape, kF32 * 3 * r,
                 [&] { ops.route(s, choice, {}, offsets, source, row_of); });
  b.report_bytes("permute", shape, kF32 * (t + r) * w,
                 [&] { ops.permute(s, x, source, {}, routed); });
  b.report_bytes("combine", shape, kF32 * (2 * t + r) * w, [&] {
    ops.combine(s, routed, {{}, {}, row_of}, weight, x, out);
  });
}

void optimizer(GpuBench& b, int64_t parameters) {
  const OpSet& ops = b.ops();
  Stream& s = b.stream();
  const View gradient = b.random(DType::f32, 1, parameters, 1e-3f),
             master = b.random(DType::f32, 1, parameters),
             m = b.random(DType::f32, 1, parameters, 1e-3f),
             v = b.random(DType::f32, 1, parameters, 0),
             working = b.random(DType::bf16, 1, parameters), square = b.random(DType::f64, 1, 1);
  const AdamWTensors tensors{gradient, master, m, v, working};
  AdamWOptions options;
  options.lr = 1e-5;
  const double n = static_cast<double>(parameters);
  // Reads gradient, master and moments, writes all four and the rounded weight.
  b.report_bytes("adamw", shape_text({parameters}), (8 * kF32 + kBf16) * n, [&] {
    ops.adamw(s, options, {&tensors, 1});
  });
  const std::vector<ConstView> views = {master};
  b.report_bytes("sum_squares", shape_text({parameters}), kF32 * n,
                 [&] { ops.sum_squares(s, views, square); });
}

}  // namespace

void bench_rows(const GpuTarget& target) {
  const int64_t tokens = target.small ? 64 : 8192, width = target.small ? 32 : 2048;
  const int64_t vocabulary = target.small ? 128 : 151936, experts = target.small ? 8 : 128;
  const int64_t parameters = target.small ? 4096 : int64_t{256} << 20, k = target.small ? 2 : 8;
  ScratchNeed need = target.ops.row_scratch(tokens * k, std::max(width, experts));
  need = max_of(need, target.ops.sum_squares_scratch(1, parameters));
  // Memory goes back between the groups.
  const auto group = [&](const auto& f) {
    GpuBench bench(target, need);
    f(bench);
  };
  group([&](GpuBench& b) { elementwise(b, tokens, width); });
  group([&](GpuBench& b) { rope(b, tokens, target.small ? 2 : 32, target.small ? 16 : 128); });
  group([&](GpuBench& b) { embedding(b, tokens, width, vocabulary); });
  group([&](GpuBench& b) { routing(b, tokens, width, experts, k); });
  group([&](GpuBench& b) { optimizer(b, parameters); });
}

}  // namespace hearth::bench
