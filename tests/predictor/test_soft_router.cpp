// The mathematics of learned predictors: a gradient check in f64, and f32 beside it.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "base/random.h"
#include "predictor/soft_router.h"

namespace hearth::test {
namespace {

using Catch::Approx;

std::vector<double> drawn(size_t n, uint64_t seed, double scale = 1) {
  const Random random(seed, RandomSite::init);
  std::vector<double> numbers(n);
  for (size_t i = 0; i < n; ++i) numbers[i] = scale * random.normal(i);
  return numbers;
}

/// Rows of positive numbers that add up to 1.
std::vector<double> distributions(size_t rows, size_t cols, uint64_t seed) {
  std::vector<double> p = drawn(rows * cols, seed);
  for (size_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (size_t c = 0; c < cols; ++c) sum += p[r * cols + c] = std::exp(2 * p[r * cols + c]);
    for (size_t c = 0; c < cols; ++c) p[r * cols + c] /= sum;
  }
  return p;
}

constexpr size_t kFewTokens = 5, kOddHidden = 37, kFewExperts = 7;

/// The mean loss over the tokens, and the gradient of the weight.
template <class T>
double loss_and_gradient(const std::vector<T>& weight, const std::vector<T>& rows,
                         const std::vector<T>& target, std::vector<T>& gradient) {
  std::vector<T> d(kFewTokens * kFewExperts);
  double loss = 0;
  for (size_t t = 0; t < kFewTokens; ++t) {
    const std::span<T> z = std::span(d).subspan(t * kFewExperts, kFewExperts);
    soft_logits<T>(weight, std::span<const T>(rows).subspan(t * kOddHidden, kOddHidden), z);
    loss +=
        soft_cross_entropy<T>(z, std::span<const T>(target).subspan(t * kFewExperts, kFewExperts),
                              T{1} / T{kFewTokens}, z);
  }
  gradient.resize(weight.size());
  for (size_t e = 0; e < kFewExperts; ++e) {
    soft_gradient<T>(d, rows, kFewExperts, static_cast<int64_t>(e),
                     std::span(gradient).subspan(e * kOddHidden, kOddHidden));
  }
  return loss / kFewTokens;
}

TEST_CASE("soft router: the gradient is that of finite differences, in f64") {
  std::vector<double> weight = drawn(kFewExperts * kOddHidden, 1, .3), gradient, unused;
  const std::vector<double> rows = drawn(kFewTokens * kOddHidden, 2),
                            target = distributions(kFewTokens, kFewExperts, 3);
  loss_and_gradient(weight, rows, target, gradient);
  double largest = 0, worst = 0;
  for (size_t i = 0; i < weight.size(); ++i) {
    const double h = 1e-5, before = weight[i];
    weight[i] = before + h;
    const double above = loss_and_gradient(weight, rows, target, unused);
    weight[i] = before - h;
    const double below = loss_and_gradient(weight, rows, target, unused);
    weight[i] = before;
    largest = std::max(largest, std::abs(gradient[i]));
    worst = std::max(worst, std::abs((above - below) / (2 * h) - gradient[i]));
  }
  CHECK(largest > .01);
  CHECK(worst < 1e-9);
}

TEST_CASE("soft router: f32 is f64 to its precision") {
  const auto narrow = [](const std::vector<double>& x) {
    return std::vector<float>(x.begin(), x.end());
  };
  const auto wide = [](const std::vector<float>& x) {
    return std::vector<double>(x.begin(), x.end());
  };
  const std::vector<float> weight = narrow(drawn(kFewExperts * kOddHidden, 4, .3)),
                           rows = narrow(drawn(kFewTokens * kOddHidden, 5)),
                           target = narrow(distributions(kFewTokens, kFewExperts, 6));
  std::vector<float> single;
  std::vector<double> exact;
  const double loss = loss_and_gradient(weight, rows, target, single);
  CHECK(loss ==
        Approx(loss_and_gradient(wide(weight), wide(rows), wide(target), exact)).epsilon(1e-6));
  for (size_t i = 0; i < exact.size(); ++i) {
    CHECK(static_cast<double>(single[i]) == Approx(exact[i]).margin(1e-6));
  }
}

TEST_CASE(
    "soft router: a target that the logits have has no gradient and the loss of its entropy") {
  const std::vector<double> logits = {1, -2, .5, 800, 799};  // large: no overflow
  std::vector<double> target(5), d(5);
  for (size_t i = 0; i < 5; ++i) target[i] = std::exp(logits[i] - 800);
  const double sum = target[0] + target[1] + target[2] + target[3] + target[4];
  double entropy = 0;
  for (double& p : target) {
    p /= sum;
    if (p > 0) entropy -= p * std::log(p);
  }
  CHECK(soft_cross_entropy<double>(logits, target, 3, d) == Approx(entropy));
  for (const double g : d) CHECK(std::abs(g) < 1e-12);
}

TEST_CASE("choose_experts: the largest first, ties by number, what is no number last") {
  const auto chosen = [](std::vector<float> logits, size_t k) {
    std::vector<int32_t> choices(k);
    choose_experts(logits, choices);
    return choices;
  };
  CHECK(chosen({1, 3, 2, 3}, 3) == std::vector<int32_t>{1, 3, 2});
  CHECK(chosen({0, 0, 0}, 3) == std::vector<int32_t>{0, 1, 2});
  CHECK(chosen({NAN, -5, NAN, 7}, 4) == std::vector<int32_t>{3, 1, 0, 2});
  CHECK(chosen({-INFINITY, INFINITY, NAN}, 3) == std::vector<int32_t>{1, 0, 2});
  // As a stable sort has them.
  const std::vector<double> drawn_logits = drawn(64, 9);
  std::vector<float> logits(drawn_logits.begin(), drawn_logits.end());
  for (float& z : logits) z = std::round(z * 4);  // with ties
  std::vector<int32_t> order(64);
  for (int32_t i = 0; i < 64; ++i) order[static_cast<size_t>(i)] = i;
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  CHECK(chosen(logits, 64) == order);
}

TEST_CASE("divide_by_rms: rows of one") {
  const std::vector<float> row = {3, -4, 0, 5};
  std::vector<float> normed(4);
  divide_by_rms(row, 0, normed);
  double squares = 0;
  for (const float x : normed) squares += double{x} * x;
  CHECK(squares == Approx(4));
  CHECK(normed[1] / normed[0] == Approx(-4.0 / 3));
  divide_by_rms(std::vector<float>(4), 1e-6, normed);
  CHECK(normed == std::vector<float>(4));
}

}  // namespace
}  // namespace hearth::test
