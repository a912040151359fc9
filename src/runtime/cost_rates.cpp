#include "runtime/cost_rates.h"

#include <algorithm>
#include <cmath>

#include "runtime/rate_bench.h"
#include "runtime/rate_limits.h"
#include "runtime/rate_sweeps.h"

namespace hearth {
namespace {

struct Rates {
  double forward = 0, backward = 0;
};

Rates measure_linear(Device& device, const RateOptions& o, const RunShapes& shapes,
                     const RateLimits& limits, int64_t rows) {
  const int64_t in = std::min(shapes.spec.hidden, limits.width);
  const int64_t out = std::min(shapes.spec.heads * shapes.spec.head_dim, limits.out);
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

uint64_t bytes_of_expert(const RunShapes& shapes, int64_t hidden, int64_t width) {
  return product_of({3, hidden, width}) *
         (size_of(shapes.expert_weights) + (shapes.experts_trained ? 4 : 0));
}

bool experts_fit(const RateOptions& o, const RunShapes& shapes, int64_t experts, int64_t rows) {
  const int64_t hidden = shapes.spec.hidden, width = shapes.spec.expert_width;
  const int64_t all = rows * experts;
  return static_cast<uint64_t>(experts) * bytes_of_expert(shapes, hidden, width) +
             4 * product_of({all, 3 * hidden + 2 * width + 2}) +
             o.ops.experts_scratch(all, experts, hidden, width, 0, o.compute, all).shared <=
         o.max_bytes;
}

/// `rows` an expert. So many experts that weights do not stay in a cache, within the memory.
Rates measure_experts(Device& device, const RateOptions& o, const RunShapes& shapes,
                      const RateLimits& limits, int64_t rows) {
  const int64_t hidden = std::min(shapes.spec.hidden, limits.width);
  const int64_t width = std::min(shapes.spec.expert_width, limits.expert_width);
  const double flops_each = 6.0 * static_cast<double>(rows) * static_cast<double>(hidden * width);
  const uint64_t bytes_each = bytes_of_expert(shapes, hidden, width);
  int64_t experts =
      std::clamp<int64_t>(std::min(std::clamp(static_cast<int64_t>(limits.flops / flops_each),
                                              limits.least_experts, limits.most_experts),
                                   static_cast<int64_t>(o.max_bytes / 2 / bytes_each)),
                          1, shapes.spec.experts);
  if (limits.whole) {
    experts = largest(experts, [&](int64_t count) { return experts_fit(o, shapes, count, rows); });
  }
  const int64_t all = rows * experts;
  RateBench bench(device, o, o.ops.experts_scratch(all, experts, hidden, width, 0, o.compute, all));
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

/// As many documents as the run packs into a micro-batch, where the limits allow.
Rates measure_attention(Device& device, const RateOptions& o, const RunShapes& shapes,
                        const RateLimits& limits) {
  const ModelSpec& spec = shapes.spec;
  // Whole groups of query heads, one a worker at least.
  const int64_t group = spec.heads / spec.kv_heads;
  const int64_t kv =
      limits.whole ? spec.kv_heads
                   : std::min<int64_t>(spec.kv_heads, std::max<int64_t>(o.workers, 8 / group));
  const AttentionShape shape{
      kv * group, kv, spec.head_dim, 0, 1 / std::sqrt(static_cast<double>(spec.head_dim)),
      o.compute};
  const int64_t q_cols = shape.heads * spec.head_dim, kv_cols = kv * spec.head_dim;
  const auto pairs_of = [](int64_t length) {
    return static_cast<double>(length) * static_cast<double>(length + 1) / 2;
  };
  int64_t length = std::min(shapes.longest, limits.document), documents = 1;
  if (limits.whole) {
    const auto fits = [&](int64_t rows, double pairs) {
      return 4 * pairs * static_cast<double>(q_cols) <= limits.flops &&
             4 * product_of({rows, 3 * q_cols + 4 * kv_cols + shape.heads}) +
                     o.ops.attention_scratch(shape, rows, std::min(rows, length)).shared <=
                 o.max_bytes;
    };
    length = largest(length, [&](int64_t rows) { return fits(rows, pairs_of(rows)); });
    documents = largest(std::max<int64_t>(shapes.tokens / length, 1), [&](int64_t count) {
      return fits(count * length, static_cast<double>(count) * pairs_of(length));
    });
  }
  const int64_t n = documents * length;
  RateBench bench(device, o, o.ops.attention_scratch(shape, n, length));
  const View q = bench.matrix(DType::f32, n, q_cols), dq = bench.matrix(DType::f32, n, q_cols);
  const View k = bench.matrix(DType::f32, n, kv_cols), dk = bench.matrix(DType::f32, n, kv_cols);
  const View v = bench.matrix(DType::f32, n, kv_cols), dv = bench.matrix(DType::f32, n, kv_cols);
  const View out = bench.matrix(DType::f32, n, q_cols);
  const View log_sum = bench.matrix(DType::f32, n, shape.heads);
  std::vector<int32_t> at;
  for (int64_t d = 0; d <= documents; ++d) at.push_back(static_cast<int32_t>(d * length));
  const View ends = bench.integers(at);
  const SequenceOffsets offsets{ends, ends};
  const double pairs = static_cast<double>(documents) * pairs_of(length);
  const double forward = bench.shortest(
      [&] { o.ops.attention_forward(bench.stream(), shape, offsets, q, k, v, out, log_sum); });
  const double backward = bench.shortest([&] {
    o.ops.attention_backward(bench.stream(), shape, offsets, out, q, k, v, out, log_sum, dq, dk,
                             dv);
  });
  const double one = pairs * static_cast<double>(q_cols);
  return {4 * one / forward, 10 * one / backward};
}

double measure_loss(Device& device, const RateOptions& o, const RunShapes& shapes,
                    const RateLimits& limits) {
  const int64_t hidden = std::min(shapes.spec.hidden, limits.width);
  const int64_t vocabulary =
      std::clamp<int64_t>(static_cast<int64_t>(o.max_bytes / 16) / hidden, 1,
                          std::min(shapes.spec.vocabulary, limits.vocabulary));
  const int64_t rows = std::clamp<int64_t>(
      static_cast<int64_t>(limits.flops / 6 / static_cast<double>(hidden * vocabulary)), 1,
      std::min(shapes.tokens, limits.rows));
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
double measure_rows(Device& device, const RateOptions& o, const RunShapes& shapes,
                    const RateLimits& limits) {
  const int64_t hidden = shapes.spec.hidden;
  int64_t rows = std::clamp<int64_t>(limits.sweep / hidden, 1, shapes.tokens);
  if (limits.whole) {
    rows = largest(rows, [&](int64_t count) {
      return product_of({count, 9 * hidden}) <= o.max_bytes;
    });
  }
  RateBench bench(device, o, o.ops.row_scratch(rows, hidden));
  const View x = bench.matrix(DType::f32, rows, hidden), y = bench.matrix(DType::f32, rows, hidden);
  const View weight = bench.matrix(DType::f32, 1, hidden), rstd = bench.matrix(DType::f32, 1, rows);
  const double time = bench.shortest([&] {
    o.ops.rmsnorm_forward(bench.stream(), x, weight, 1e-6, y, rstd);
    o.ops.add(bench.stream(), x, y, y);
  });
  return 20 * static_cast<double>(rows * hidden) / time;
}

}  // namespace

CostRates measure_costs(Device& device, const RateOptions& options, const RunShapes& shapes,
                        const MachineRates& best) {
  const RateLimits limits = rate_limits(device, best);
  CostRates rates;
  const auto add = [](RateCurve& curve, int64_t rows, double rate) {
    curve.points.push_back({static_cast<double>(rows), rate});
  };
  int64_t rows = std::min(shapes.tokens, limits.rows);
  if (limits.whole) {  // rows alone are cut: a product's rate depends on its sides more
    const int64_t in = shapes.spec.hidden, out = shapes.spec.heads * shapes.spec.head_dim;
    rows = largest(rows, [&](int64_t count) {
      return 2 * static_cast<double>(count) * static_cast<double>(in * out) <= limits.flops &&
             8 * product_of({in, out}) + 4 * product_of({count, in + out}) +
                     options.ops.linear_scratch(count, out, in, 0).shared <=
                 options.max_bytes;
    });
  }
  const Rates linear = measure_linear(device, options, shapes, limits, rows);
  add(rates.linear_forward, rows, linear.forward);
  add(rates.linear_backward, rows, linear.backward);
  if (shapes.spec.moe_layers() > 0) {
    int64_t mean = std::clamp<int64_t>(
        shapes.tokens * shapes.spec.experts_per_token / shapes.spec.experts, 1, limits.rows);
    if (limits.whole) {
      mean = largest(mean, [&](int64_t each) { return experts_fit(options, shapes, 1, each); });
    }
    // The mean, and what a less visited expert gets.
    for (const int64_t each : {mean / 4, mean}) {
      if (each < 1) continue;
      const Rates experts = measure_experts(device, options, shapes, limits, each);
      add(rates.experts_forward, each, experts.forward);
      add(rates.experts_backward, each, experts.backward);
    }
  }
  const Rates attention = measure_attention(device, options, shapes, limits);
  rates.attention_forward = attention.forward;
  rates.attention_backward = attention.backward;
  rates.loss = measure_loss(device, options, shapes, limits);
  rates.row_bytes_per_s = measure_rows(device, options, shapes, limits);
  rates.norm_params_per_s = measure_norm(device, options, limits);
  rates.update_params_per_s =
      measure_update(device, options, limits, options.compute == Compute::bf16);
  return rates;
}

}  // namespace hearth
