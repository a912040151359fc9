#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "cpu_kernels/vector_math.h"

using hearth::fast_exp;

TEST_CASE("exp: within 1.5 units in the last place") {
  double worst = 0;
  for (int i = -870000; i <= 887000; ++i) {
    const float x = static_cast<float>(i) * 1e-4f;
    const double exact = std::exp(static_cast<double>(x));
    const float rounded = static_cast<float>(exact);
    const double unit = std::nextafter(rounded, std::numeric_limits<float>::infinity()) - rounded;
    worst = std::max(worst, std::abs(fast_exp(x) - exact) / unit);
  }
  CHECK(worst < 1.5);
}

TEST_CASE("exp: its ends") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(fast_exp(0.0f) == 1.0f);
  CHECK(fast_exp(-infinity) == 0.0f);
  CHECK(fast_exp(-100.0f) == 0.0f);
  CHECK(fast_exp(-1e30f) == 0.0f);
  CHECK(fast_exp(88.7f) < infinity);
  CHECK(fast_exp(88.8f) == infinity);
  CHECK(fast_exp(infinity) == infinity);
  CHECK(std::isnan(fast_exp(std::numeric_limits<float>::quiet_NaN())));
}
