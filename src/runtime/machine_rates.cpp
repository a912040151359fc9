#include "runtime/machine_rates.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/sanitized.h"
#include "runtime/rate_bench.h"

namespace hearth {

namespace {

// Instrumented loops have no rate worth a measurement: every size below is divided by this there.
constexpr int64_t kPart = kSanitized ? 8 : 1;

// No measurement takes matrices of more than this; larger sizes run at the same rate.
constexpr int64_t kMostRows = 512 / kPart, kMostWidth = 2048 / kPart, kMostOut = 1024 / kPart;
constexpr int64_t kMostExpertWidth = 1024 / kPart, kMostDocument = 512 / kPart;
constexpr int64_t kMostVocabulary = 2048 / kPart;
constexpr int64_t kMostSweep = (4 << 20) / kPart;  // parameters
constexpr int64_t kLeastExperts = 2, kMostExperts = 8;
constexpr double kMostFlops = 2e9;

struct Rates {
  double forward = 0, backward = 0;
};

Rates measure_linear(Device& device, const RateOptions& o, const RunShapes& shapes, int64_t rows) {
  const int64_t in = std::min(shapes.spec.hidden, kMostWidth);
  const int64_t out = std::min(shapes.spec.heads * shapes.spec.head_dim, kMostOut);
  RateBench bench(device, o, o.ops.linear_scratch(rows, out, in, 0));
  const LinearView w{bench.matrix(shapes.linear_weights, out, in), {}, o.compute};
  const View x = bench.matrix(DType::f32, rows, in), y = bench.matrix(DType::f32, rows, out);
  const View dw = shapes.linear_trained ? bench.matrix(DType::f32, out, in) : View{};
  const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(in * out);
  const double forward = bench.shortest([&] { o.ops.linear_forward(bench.stream(), x, w, y); });
  const double backward = bench.shortest([&] {
    o.ops.linear_dgrad(bench.stream(), y, w, x, false);
    if (dw) o.ops.linear_wgrad(bench.stream(), y, x, w, {.weight = dw});
  });
  return {flops / forward, (dw ? 2 : 1) * flops / backward};
}

/// `rows` a expert. So many experts that weights do not stay in a cache, within the memory.
Rates measure_experts(Device& device, const RateOptions& o, const RunShapes& shapes, int64_t rows) {
  const int64_t hidden = std::min(shapes.spec.hidden, kMostWidth);
  const int64_t width = std::min(shapes.spec.expert_width, kMostExpertWidth);
  const double flops_each = 6.0 * static_cast<double>(rows) * static_cast<double>(hidden * width);
  const auto bytes_each = static_cast<uint64_t>(3 * hidden * width) *
                          (size_of(shapes.expert_weights) + (shapes.experts_trained ? 4 : 0));
  const int64_t experts = std::clamp<int64_t>(
      std::min(
          std::clamp(static_cast<int64_t>(kMostFlops / flops_each), kLeastExperts, kMostExperts),
          static_cast<int64_t>(o.max_bytes / 2 / bytes_each)),
      1, shapes.spec.experts);
  const int64_t all = rows * experts;
  RateBench bench(device, o, o.ops.experts_scratch(all, experts, hidden, width, 0));
  std::vector<ExpertView> weights;
  std::vector<ExpertGradient> gradients(static_cast<size_t>(experts));
  std::vector<int32_t> offsets{0};
  for (int64_t e = 0; e < experts; ++e) {
    const auto map = [&](int64_t out, int64_t in) {
      return LinearView{bench.matrix(shapes.expert_weights, out, in), {}, o.compute};
    };
    weights.push_back({map(width, hidden), map(width, hidden), map(hidden, width)});
    if (shapes.experts_trained) {
      const auto gradient = [&](int64_t out, int64_t in) {
        return LinearGradient{.weight = bench.matrix(DType::f32, out, in)};
      };
      gradients[static_cast<size_t>(e)] = {gradient(width, hidden), gradient(width, hidden),
                                           gradient(hidden, width)};
    }
    offsets.push_back(static_cast<int32_t>((e + 1) * rows));
  }
  const View at = bench.integers(offsets);
  const View x = bench.matrix(DType::f32, all, hidden), y = bench.matrix(DType::f32, all, hidden);
  const View gate = bench.matrix(DType::f32, all, width), up = bench.matrix(DType::f32, all, width);
  const View weight = bench.matrix(DType::f32, 1, all), dweight = bench.matrix(DType::f32, 1, all);
  const View dx = bench.matrix(DType::f32, all, hidden);
  const double flops = flops_each * static_cast<double>(experts);
  const double forward =
      bench.shortest([&] { o.ops.experts_forward(bench.stream(), x, at, weights, gate, up, y); });
  const double backward = bench.shortest([&] {
    o.ops.experts_backward(bench.stream(), y, weight, x, at, weights, gate, up, dx, dweight,
                           gradients);
  });
  return {flops / forward, (shapes.experts_trained ? 2 : 1) * flops / backward};
}

Rates measure_attention(Device& device, const RateOptions& o, const RunShapes& shapes) {
  const ModelSpec& spec = shapes.spec;
  const int64_t n = std::min(shapes.longest, kMostDocument);
  // Whole groups of query heads, one a worker at least.
  const int64_t group = spec.heads / spec.kv_heads;
  const int64_t kv = std::min<int64_t>(spec.kv_heads, std::max<int64_t>(o.workers, 8 / group));
  const AttentionShape shape{
      kv * group, kv, spec.head_dim, 0, 1 / std::sqrt(static_cast<double>(spec.head_dim)),
      o.compute};
  const int64_t q_cols = shape.heads * spec.head_dim, kv_cols = kv * spec.head_dim;
  RateBench bench(device, o, o.ops.attention_scratch(shape, n, n));
  const View q = bench.matrix(DType::f32, n, q_cols), dq = bench.matrix(DType::f32, n, q_cols);
  const View k = bench.matrix(DType::f32, n, kv_cols), dk = bench.matrix(DType::f32, n, kv_cols);
  const View v = bench.matrix(DType::f32, n, kv_cols), dv = bench.matrix(DType::f32, n, kv_cols);
  const View out = bench.matrix(DType::f32, n, q_cols);
  const View log_sum = bench.matrix(DType::f32, n, shape.heads);
  const View ends = bench.integers({0, static_cast<int32_t>(n)});
  const SequenceOffsets offsets{ends, ends};
  const double pairs = static_cast<double>(n) * static_cast<double>(n + 1) / 2;
  const double forward = bench.shortest(
      [&] { o.ops.attention_forward(bench.stream(), shape, offsets, q, k, v, out, log_sum); });
  const double backward = bench.shortest([&] {
    o.ops.attention_backward(bench.stream(), shape, offsets, out, q, k, v, out, log_sum, dq, dk,
                             dv);
  });
  const double one = pairs * static_cast<double>(q_cols);
  return {4 * one / forward, 10 * one / backward};
}

double measure_loss(Device& device, const RateOptions& o, const RunShapes& shapes) {
  const int64_t hidden = std::min(shapes.spec.hidden, kMostWidth);
  const int64_t vocabulary = std::clamp<int64_t>(static_cast<int64_t>(o.max_bytes / 16) / hidden, 1,
                                                 std::min(shapes.spec.vocabulary, kMostVocabulary));
  const int64_t rows = std::clamp<int64_t>(
      static_cast<int64_t>(kMostFlops / 6 / static_cast<double>(hidden * vocabulary)), 1,
      std::min(shapes.tokens, kMostRows));
  RateBench bench(device, o, o.ops.cross_entropy_scratch(rows, hidden, vocabulary, 0));
  const LinearView head{bench.matrix(shapes.linear_weights, vocabulary, hidden), {}, o.compute};
  const View x = bench.matrix(DType::f32, rows, hidden),
             dx = bench.matrix(DType::f32, rows, hidden);
  const View dw = shapes.linear_trained ? bench.matrix(DType::f32, vocabulary, hidden) : View{};
  const View labels = bench.integers(std::vector<int32_t>(static_cast<size_t>(rows), 0));
  const View loss = bench.matrix(DType::f64, 1, 1);
  const double time = bench.shortest([&] {
    o.ops.cross_entropy(bench.stream(), x, head, labels, 1e-3, loss, dx, {.weight = dw});
  });
  return (dw ? 6.0 : 4.0) * static_cast<double>(rows) * static_cast<double>(hidden * vocabulary) /
         time;
}

/// A norm and a sum over rows as large as the run's: 20 bytes an element.
double measure_rows(Device& device, const RateOptions& o, const RunShapes& shapes) {
  const int64_t hidden = shapes.spec.hidden;
  const int64_t rows = std::clamp<int64_t>(kMostSweep / hidden, 1, shapes.tokens);
  RateBench bench(device, o, o.ops.row_scratch(rows, hidden));
  const View x = bench.matrix(DType::f32, rows, hidden), y = bench.matrix(DType::f32, rows, hidden);
  const View weight = bench.matrix(DType::f32, 1, hidden), rstd = bench.matrix(DType::f32, 1, rows);
  const double time = bench.shortest([&] {
    o.ops.rmsnorm_forward(bench.stream(), x, weight, 1e-6, y, rstd);
    o.ops.add(bench.stream(), x, y, y);
  });
  return 20 * static_cast<double>(rows * hidden) / time;
}

int64_t sweep_parameters(const RateOptions& o) {
  const auto most = static_cast<int64_t>(std::min<uint64_t>(o.max_bytes / 16, kMostSweep));
  return std::clamp<int64_t>(o.parameters, 1 << 12, std::max<int64_t>(most, 1 << 12));
}

double measure_update(Device& device, const RateOptions& o, bool working) {
  const int64_t n = sweep_parameters(o);
  RateBench bench(device, o, o.ops.row_scratch(1, 1024));
  const View g = bench.matrix(DType::f32, 1, n), w = bench.matrix(DType::f32, 1, n);
  const View m = bench.matrix(DType::f32, 1, n), v = bench.positive(1, n);
  const View rounded = working ? bench.matrix(DType::bf16, 1, n) : View{};
  const AdamWTensors tensors{g, w, m, v, rounded};
  AdamWOptions adamw;
  adamw.lr = 1e-5;
  const double time = bench.shortest([&] { o.ops.adamw(bench.stream(), adamw, {&tensors, 1}); });
  return static_cast<double>(n) / time;
}

double measure_norm(Device& device, const RateOptions& o) {
  const int64_t n = 4 * sweep_parameters(o);
  RateBench bench(device, o, o.ops.sum_squares_scratch(1, n));
  const ConstView x = bench.matrix(DType::f32, 1, n);
  const View sum = bench.matrix(DType::f64, 1, 1);
  return static_cast<double>(n) / bench.shortest([&] {
    o.ops.sum_squares(bench.stream(), {&x, 1}, sum);
  });
}

}  // namespace

MachineRates measure_rates(Device& device, const RateOptions& options) {
  // Halved until two thirds of the memory hold them; the rest is for scratch.
  int64_t out = 1024 / kPart, in = 512 / kPart, count = 1024 / kPart;
  while (count > 64 &&
         6 * static_cast<uint64_t>(out * in + count * (in + out)) > options.max_bytes) {
    out /= 2, in /= 2, count /= 2;
  }
  MachineRates rates;
  {
    RateBench bench(device, options, options.ops.linear_scratch(count, out, in, 0));
    const DType type = options.compute == Compute::bf16 ? DType::bf16 : DType::f32;
    const LinearView w{bench.matrix(type, out, in), {}, options.compute};
    const View x = bench.matrix(DType::f32, count, in), y = bench.matrix(DType::f32, count, out);
    // All sizes in turn, so that a neighbour's burst does not hit one of them alone.
    for (int round = 0; round < 2; ++round) {
      for (const int64_t rows : {count / 4, count / 2, count}) {
        const double time = bench.shortest([&] {
          options.ops.linear_forward(bench.stream(), x.slice(0, rows), w, y.slice(0, rows));
        });
        const double flops = 2.0 * static_cast<double>(rows * out * in);
        rates.flops_per_s = std::max(rates.flops_per_s, flops / time);
      }
    }
  }
  rates.update_params_per_s = measure_update(device, options, false);
  return rates;
}

CostRates measure_costs(Device& device, const RateOptions& options, const RunShapes& shapes) {
  CostRates rates;
  const auto add = [](RateCurve& curve, int64_t rows, double rate) {
    curve.points.push_back({static_cast<double>(rows), rate});
  };
  const int64_t rows = std::min(shapes.tokens, kMostRows);
  const Rates linear = measure_linear(device, options, shapes, rows);
  add(rates.linear_forward, rows, linear.forward);
  add(rates.linear_backward, rows, linear.backward);
  if (shapes.spec.moe_layers() > 0) {
    const int64_t mean = std::clamp<int64_t>(
        shapes.tokens * shapes.spec.experts_per_token / shapes.spec.experts, 1, kMostRows);
    // The mean, and what a less visited expert gets.
    for (const int64_t each : {mean / 4, mean}) {
      if (each < 1) continue;
      const Rates experts = measure_experts(device, options, shapes, each);
      add(rates.experts_forward, each, experts.forward);
      add(rates.experts_backward, each, experts.backward);
    }
  }
  const Rates attention = measure_attention(device, options, shapes);
  rates.attention_forward = attention.forward;
  rates.attention_backward = attention.backward;
  rates.loss = measure_loss(device, options, shapes);
  rates.row_bytes_per_s = measure_rows(device, options, shapes);
  rates.norm_params_per_s = measure_norm(device, options);
  rates.update_params_per_s = measure_update(device, options, options.compute == Compute::bf16);
  return rates;
}

}  // namespace hearth
