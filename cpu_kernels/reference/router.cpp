#include <algorithm>
#include <cmath>

#include "base/stream.h"
#include "reference/reference_op_set.h"
#include "reference/values.h"

namespace hearth {
namespace {

/// The index of the largest probability that is not yet among the `taken` chosen; on ties the
/// lowest. Where nothing compares (NaN) it is the first that is left.
template <class T>
int32_t largest_left(const T* probs, int64_t n, const int32_t* chosen, int64_t taken) {
  int64_t best = -1;
  for (int64_t e = 0; e < n; ++e) {
    if (std::find(chosen, chosen + taken, static_cast<int32_t>(e)) != chosen + taken) continue;
    if (best < 0 || probs[e] > probs[best]) best = e;
  }
  return static_cast<int32_t>(best);
}

/// The divisor of a token's combine weights.
template <class T>
double weight_divisor(const T* probs, const int32_t* chosen, int64_t k, bool normalize) {
  double sum = 0;
  for (int64_t j = 0; j < k; ++j) sum += probs[chosen[j]];
  return normalize ? sum : 1.0;
}

void router_forward(Stream&, ConstView logits, bool normalize, View probs, View choice,
                    View weight) {
  const int64_t experts = logits.cols, k = choice.cols;
  for_type(logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t t = 0; t < logits.rows; ++t) {
      const T* z = logits.row<T>(t);
      T* p = probs.row<T>(t);
      const double largest = *std::max_element(z, z + experts);
      double sum = 0;
      for (int64_t e = 0; e < experts; ++e) sum += std::exp(z[e] - largest);
      for (int64_t e = 0; e < experts; ++e) p[e] = static_cast<T>(std::exp(z[e] - largest) / sum);

      int32_t* chosen = choice.row<int32_t>(t);
      for (int64_t j = 0; j < k; ++j) chosen[j] = largest_left(p, experts, chosen, j);
      const double divisor = weight_divisor(p, chosen, k, normalize);
      for (int64_t j = 0; j < k; ++j) weight.row<T>(t)[j] = static_cast<T>(p[chosen[j]] / divisor);
    }
  });
}

// First the gradient of probs: of w_j = p_j / s it is (dw_j - sum_i dw_i w_i) / s with s the sum of
// the chosen, of w_j = p_j it is dw_j. Then through the softmax: p * (dp - <p, dp>).
void router_backward(Stream& stream, ConstView dweight, ConstView probs, ConstView choice,
                     bool normalize, ConstView dprobs, View dlogits) {
  const int64_t experts = probs.cols, k = choice.cols;
  Scratch::Frame frame(stream.scratch());
  double* dp = stream.scratch().take<double>(experts);
  for_type(probs.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t t = 0; t < probs.rows; ++t) {
      const T *p = probs.row<T>(t), *dw = dweight.row<T>(t);
      const int32_t* chosen = choice.row<int32_t>(t);
      const double divisor = weight_divisor(p, chosen, k, normalize);
      double mean = 0;
      for (int64_t j = 0; j < k && normalize; ++j) mean += dw[j] * p[chosen[j]] / divisor;
      for (int64_t e = 0; e < experts; ++e) dp[e] = dprobs ? value(dprobs, 0, e) : 0.0;
      for (int64_t j = 0; j < k; ++j) dp[chosen[j]] += (dw[j] - mean) / divisor;

      double inner = 0;
      for (int64_t e = 0; e < experts; ++e) inner += p[e] * dp[e];
      for (int64_t e = 0; e < experts; ++e) {
        dlogits.row<T>(t)[e] = static_cast<T>(p[e] * (dp[e] - inner));
      }
    }
  });
}

void router_sums(Stream&, ConstView probs, ConstView choice, View counts, View prob_sums) {
  const int64_t experts = probs.cols;
  for_type(probs.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t e = 0; e < experts; ++e) {
      double count = 0, sum = 0;
      for (int64_t t = 0; t < probs.rows; ++t) {
        sum += probs.row<T>(t)[e];
        for (int64_t j = 0; j < choice.cols; ++j) count += choice.row<int32_t>(t)[j] == e;
      }
      counts.as<double>()[e] = count;
      prob_sums.as<double>()[e] = sum;
    }
  });
}

void router_z_forward(Stream&, ConstView logits, View log_sum, View squares) {
  double total = 0;
  for_type(logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t t = 0; t < logits.rows; ++t) {
      const T* z = logits.row<T>(t);
      const double largest = *std::max_element(z, z + logits.cols);
      double sum = 0;
      for (int64_t e = 0; e < logits.cols; ++e) sum += std::exp(z[e] - largest);
      const T l = static_cast<T>(largest + std::log(sum));
      log_sum.row<T>(t)[0] = l;
      total += double{l} * l;
    }
  });
  squares.as<double>()[0] = total;
}

void router_z_backward(Stream&, ConstView log_sum, ConstView probs, double scale, View dlogits) {
  for_type(probs.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t t = 0; t < probs.rows; ++t) {
      const double factor = 2 * scale * log_sum.row<T>(t)[0];
      for (int64_t e = 0; e < probs.cols; ++e) {
        dlogits.row<T>(t)[e] += static_cast<T>(factor * probs.row<T>(t)[e]);
      }
    }
  });
}

}  // namespace

void reference::add_router(OpTable& ops) {
  ops.router_forward.add(ReferenceOps::kName, router_forward);
  ops.router_backward.add(ReferenceOps::kName, router_backward);
  ops.router_sums.add(ReferenceOps::kName, router_sums);
  ops.router_z_forward.add(ReferenceOps::kName, router_z_forward);
  ops.router_z_backward.add(ReferenceOps::kName, router_z_backward);
}

}  // namespace hearth
