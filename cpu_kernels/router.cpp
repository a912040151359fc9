#include <algorithm>
#include <cmath>

#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/tiles.h"
#include "cpu_kernels/vector_math.h"

namespace hearth {
namespace {

HEARTH_CLONES void exp_row(const float* z, float shift, float* p, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = fast_exp(z[i] - shift);
}

HEARTH_CLONES void divide_row(float* p, float divisor, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] /= divisor;
}

void softmax_row(const float* z, float* p, int64_t n) {
  exp_row(z, *std::max_element(z, z + n), p, n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += p[i];
  divide_row(p, static_cast<float>(sum), n);
}

HEARTH_CLONES float largest(const float* x, int64_t n) {
  float lane[16];
  std::fill_n(lane, 16, -1.0f);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (int l = 0; l < 16; ++l) lane[l] = x[i + l] > lane[l] ? x[i + l] : lane[l];
  }
  for (int l = 0; i < n; ++i, ++l) lane[l] = x[i] > lane[l] ? x[i] : lane[l];
  return *std::max_element(lane, lane + 16);
}

// The k largest probabilities, largest first, the lowest index on ties. `left` is a copy of the
// probabilities, in which what is taken becomes -1. Where nothing compares (NaN) the first that is
// left is taken, so that a choice is always an expert.
void choose(float* left, int64_t n, int32_t* chosen, int64_t k) {
  for (int64_t j = 0; j < k; ++j) {
    const float* best = std::find(left, left + n, largest(left, n));
    if (best == left + n || *best < 0) {
      best = std::find_if(left, left + n, [](float p) { return !(p < 0); });
    }
    chosen[j] = static_cast<int32_t>(best - left);
    left[chosen[j]] = -1;
  }
}

// The divisor of a token's combine weights.
double weight_divisor(const float* probs, const int32_t* chosen, int64_t k, bool normalize) {
  double sum = 0;
  for (int64_t j = 0; j < k; ++j) sum += probs[chosen[j]];
  return normalize ? sum : 1.0;
}

double element(const ConstView& v, int64_t i) {
  return v.dtype == DType::f64 ? v.as<double>()[i] : v.as<float>()[i];
}

void router_forward(Stream& stream, ConstView logits, bool normalize, View probs, View choice,
                    View weight) {
  const int64_t experts = logits.cols, k = choice.cols;
  HostStream& host = host_stream(stream);
  for_blocks(host, logits.rows, row_block(experts * 4),
             [&](int64_t begin, int64_t end, int worker) {
               Scratch::Frame frame(host.worker_scratch(worker));
               float* left = host.worker_scratch(worker).take<float>(experts);
               for (int64_t t = begin; t < end; ++t) {
                 float *p = probs.row<float>(t), *w = weight.row<float>(t);
                 int32_t* chosen = choice.row<int32_t>(t);
                 softmax_row(logits.row<float>(t), p, experts);
                 std::copy_n(p, experts, left);
                 choose(left, experts, chosen, k);
                 const double divisor = weight_divisor(p, chosen, k, normalize);
                 for (int64_t j = 0; j < k; ++j) w[j] = static_cast<float>(p[chosen[j]] / divisor);
               }
             });
}

// First the gradient of probs, built in dlogits: of w_j = p_j / s it is (dw_j - sum_i dw_i w_i) / s
// with s the sum of the chosen, of w_j = p_j it is dw_j. Then through the softmax:
// p * (dp - <p, dp>).
void router_backward(Stream& stream, ConstView dweight, ConstView probs, ConstView choice,
                     bool normalize, ConstView dprobs, View dlogits) {
  const int64_t experts = probs.cols, k = choice.cols;
  for_blocks(host_stream(stream), probs.rows, row_block(experts * 4),
             [&](int64_t begin, int64_t end, int) {
               for (int64_t t = begin; t < end; ++t) {
                 const float *p = probs.row<float>(t), *dw = dweight.row<float>(t);
                 const int32_t* chosen = choice.row<int32_t>(t);
                 float* dp = dlogits.row<float>(t);
                 const double divisor = weight_divisor(p, chosen, k, normalize);
                 double mean = 0;
                 for (int64_t j = 0; j < k && normalize; ++j)
                   mean += dw[j] * p[chosen[j]] / divisor;
                 for (int64_t e = 0; e < experts; ++e) {
                   dp[e] = dprobs ? static_cast<float>(element(dprobs, e)) : 0.0f;
                 }
                 for (int64_t j = 0; j < k; ++j) {
                   dp[chosen[j]] += static_cast<float>((dw[j] - mean) / divisor);
                 }
                 double inner = 0;
                 for (int64_t e = 0; e < experts; ++e) inner += double{p[e]} * dp[e];
                 for (int64_t e = 0; e < experts; ++e) {
                   dp[e] = static_cast<float>(p[e] * (dp[e] - inner));
                 }
               }
             });
}

// A tile owns some experts, so that each sum goes over the tokens in order.
void router_sums(Stream& stream, ConstView probs, ConstView choice, View counts, View prob_sums) {
  constexpr int64_t kExperts = 16;
  const int64_t experts = probs.cols;
  double *count = counts.as<double>(), *sum = prob_sums.as<double>();
  for_blocks(host_stream(stream), experts, kExperts, [&](int64_t begin, int64_t end, int) {
    std::fill(count + begin, count + end, 0.0);
    std::fill(sum + begin, sum + end, 0.0);
    for (int64_t t = 0; t < probs.rows; ++t) {
      for (int64_t e = begin; e < end; ++e) sum[e] += probs.row<float>(t)[e];
      for (int64_t j = 0; j < choice.cols; ++j) {
        const int64_t e = choice.row<int32_t>(t)[j];
        if (e >= begin && e < end) count[e] += 1;
      }
    }
  });
}

// One tile, for the sum goes over the tokens in order; it is a thousandth of the layer.
void router_z_forward(Stream& stream, ConstView logits, View log_sum, View squares) {
  const int64_t experts = logits.cols;
  for_blocks(host_stream(stream), logits.rows, std::max<int64_t>(1, logits.rows),
             [&](int64_t begin, int64_t end, int worker) {
               HostStream& host = host_stream(stream);
               Scratch::Frame frame(host.worker_scratch(worker));
               float* p = host.worker_scratch(worker).take<float>(experts);
               double total = 0;
               for (int64_t t = begin; t < end; ++t) {
                 const float* z = logits.row<float>(t);
                 const float largest = *std::max_element(z, z + experts);
                 exp_row(z, largest, p, experts);
                 double sum = 0;
                 for (int64_t e = 0; e < experts; ++e) sum += p[e];
                 const auto l = static_cast<float>(largest + std::log(sum));
                 log_sum.row<float>(t)[0] = l;
                 total += double{l} * l;
               }
               squares.as<double>()[0] = total;
             });
}

void router_z_backward(Stream& stream, ConstView log_sum, ConstView probs, double scale,
                       View dlogits) {
  for_blocks(host_stream(stream), probs.rows, row_block(probs.cols * 2),
             [&](int64_t begin, int64_t end, int) {
               for (int64_t t = begin; t < end; ++t) {
                 const auto factor = static_cast<float>(2 * scale * log_sum.row<float>(t)[0]);
                 const float* p = probs.row<float>(t);
                 float* d = dlogits.row<float>(t);
                 for (int64_t e = 0; e < probs.cols; ++e) d[e] += factor * p[e];
               }
             });
}

}  // namespace

void cpu::add_router(OpTable& ops) {
  ops.router_forward.add(CpuOps::kName, router_forward);
  ops.router_backward.add(CpuOps::kName, router_backward);
  ops.router_sums.add(CpuOps::kName, router_sums);
  ops.router_z_forward.add(CpuOps::kName, router_z_forward);
  ops.router_z_backward.add(CpuOps::kName, router_z_backward);
}

}  // namespace hearth
