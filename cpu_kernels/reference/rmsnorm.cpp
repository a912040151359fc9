#include <cmath>

#include "reference/reference_op_set.h"
#include "reference/values.h"

namespace hearth {

void ReferenceOps::rmsnorm_forward(Stream&, ConstView x, ConstView weight, double eps, View y,
                                   View rstd) const {
  const int64_t n = x.cols;
  HEARTH_CHECK(has_shape(weight, 1, n) && has_shape(y, x.rows, n) && has_shape(rstd, 1, x.rows),
               "rmsnorm_forward: shapes");
  for_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t t = 0; t < x.rows; ++t) {
      const T* in = x.row<T>(t);
      double squares = 0;
      for (int64_t i = 0; i < n; ++i) squares += double{in[i]} * in[i];
      const double r = 1.0 / std::sqrt(squares / static_cast<double>(n) + eps);
      rstd.as<T>()[t] = static_cast<T>(r);
      T* out = y.row<T>(t);
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(in[i] * r * value(weight, 0, i));
    }
  });
}

// With n = x * rstd and g = dy * weight, a row of dx is rstd * (g - n * mean(g * n)); the weight's
// gradient is the sum over rows of dy * n.
void ReferenceOps::rmsnorm_backward(Stream&, ConstView dy, ConstView x, ConstView weight,
                                    ConstView rstd, View dx, View weight_gradient) const {
  const int64_t n = x.cols;
  HEARTH_CHECK(has_shape(dy, x.rows, n) && has_shape(weight, 1, n) && has_shape(rstd, 1, x.rows) &&
                   has_shape(dx, x.rows, n) && empty_or_shape(weight_gradient, 1, n),
               "rmsnorm_backward: shapes");
  for_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    if (weight_gradient) {  // first, because dx may be dy
      for (int64_t i = 0; i < n; ++i) {
        double sum = 0;
        for (int64_t t = 0; t < x.rows; ++t) {
          sum += double{dy.row<T>(t)[i]} * x.row<T>(t)[i] * rstd.as<T>()[t];
        }
        add_value(weight_gradient, 0, i, sum);
      }
    }
    for (int64_t t = 0; t < x.rows; ++t) {
      const T *g = dy.row<T>(t), *in = x.row<T>(t);
      T* out = dx.row<T>(t);
      const double r = rstd.as<T>()[t];
      double mean = 0;
      for (int64_t i = 0; i < n; ++i) mean += g[i] * value(weight, 0, i) * in[i] * r;
      mean /= static_cast<double>(n);
      for (int64_t i = 0; i < n; ++i) {
        out[i] = static_cast<T>(r * (g[i] * value(weight, 0, i) - in[i] * r * mean));
      }
    }
  });
}

}  // namespace hearth
