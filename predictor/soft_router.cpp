#include "predictor/soft_router.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace hearth {

namespace {

template <class T>
T dot_in_lanes(const T* a, const T* b, int64_t n) {
  constexpr int kLanes = 16;
  T lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) lane[l] += a[i + l] * b[i + l];
  }
  for (int l = 0; i < n; ++i, ++l) lane[l] += a[i] * b[i];
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
  }
  return lane[0];
}

}  // namespace

template <class T>
void soft_logits(std::span<const T> weight, std::span<const T> row, std::span<T> logits) {
  HEARTH_CHECK(weight.size() == row.size() * logits.size(), "soft router: shapes");
  for (size_t e = 0; e < logits.size(); ++e) {
    logits[e] = dot_in_lanes(weight.data() + e * row.size(), row.data(), std::ssize(row));
  }
}

template <class T>
double soft_cross_entropy(std::span<const T> logits, std::span<const T> target, T scale,
                          std::span<T> d_logits) {
  HEARTH_CHECK(logits.size() == target.size() && logits.size() == d_logits.size(),
               "soft router: shapes");
  const auto largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0;
  for (const T z : logits) sum += std::exp(static_cast<double>(z) - largest);
  const double log_sum = largest + std::log(sum);
  double loss = 0;
  for (size_t e = 0; e < logits.size(); ++e) {
    const double log_p = static_cast<double>(logits[e]) - log_sum;
    loss -= static_cast<double>(target[e]) * log_p;
    d_logits[e] = scale * (static_cast<T>(std::exp(log_p)) - target[e]);
  }
  return loss;
}

template <class T>
void soft_gradient(std::span<const T> d_logits, std::span<const T> rows, int64_t experts,
                   int64_t expert, std::span<T> gradient) {
  const size_t hidden = gradient.size(), tokens = rows.size() / hidden;
  HEARTH_CHECK(d_logits.size() == tokens * static_cast<size_t>(experts), "soft router: shapes");
  std::fill(gradient.begin(), gradient.end(), T{0});
  for (size_t t = 0; t < tokens; ++t) {
    const T d = d_logits[t * static_cast<size_t>(experts) + static_cast<size_t>(expert)];
    const T* row = rows.data() + t * hidden;
    T* sum = gradient.data();
    for (size_t h = 0; h < hidden; ++h) sum[h] += d * row[h];
  }
}

template void soft_logits(std::span<const float>, std::span<const float>, std::span<float>);
template void soft_logits(std::span<const double>, std::span<const double>, std::span<double>);
template double soft_cross_entropy(std::span<const float>, std::span<const float>, float,
                                   std::span<float>);
template double soft_cross_entropy(std::span<const double>, std::span<const double>, double,
                                   std::span<double>);
template void soft_gradient(std::span<const float>, std::span<const float>, int64_t, int64_t,
                            std::span<float>);
template void soft_gradient(std::span<const double>, std::span<const double>, int64_t, int64_t,
                            std::span<double>);

void choose_experts(std::span<const float> logits, std::span<int32_t> choices) {
  HEARTH_CHECK(choices.size() <= logits.size(), "soft router: more choices than experts");
  // Whether expert a comes before b.
  const auto before = [&](size_t a, size_t b) {
    const bool a_is = !std::isnan(logits[a]), b_is = !std::isnan(logits[b]);
    if (a_is != b_is) return a_is;
    if (a_is && logits[a] != logits[b]) return logits[a] > logits[b];
    return a < b;
  };
  size_t last = 0;
  for (size_t j = 0; j < choices.size(); ++j) {
    size_t best = logits.size();
    for (size_t e = 0; e < logits.size(); ++e) {
      if (j > 0 && !before(last, e)) continue;  // taken
      if (best == logits.size() || before(e, best)) best = e;
    }
    choices[j] = static_cast<int32_t>(best);
    last = best;
  }
}

void divide_by_rms(std::span<const float> row, double eps, std::span<float> normed) {
  HEARTH_CHECK(row.size() == normed.size(), "soft router: shapes");
  double squares = 0;
  for (const float x : row) squares += double{x} * x;
  const double root = std::sqrt(squares / static_cast<double>(row.size()) + eps);
  for (size_t i = 0; i < row.size(); ++i) {
    normed[i] = static_cast<float>(static_cast<double>(row[i]) / root);
  }
}

}  // namespace hearth
