#include <cmath>

#include "reference/reference_op_set.h"
#include "reference/values.h"

namespace hearth {
namespace {

void rmsnorm_forward(Stream&, ConstView x, ConstView weight, double eps, View y, View rstd) {
  const int64_t n = x.cols;
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
void rmsnorm_backward(Stream&, ConstView dy, ConstView x, ConstView weight, ConstView rstd, View dx,
                      View weight_gradient) {
  const int64_t n = x.cols;
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

}  // namespace

void reference::add_rmsnorm(OpTable& ops) {
  ops.rmsnorm_forward.add(ReferenceOps::kName, rmsnorm_forward);
  ops.rmsnorm_backward.add(ReferenceOps::kName, rmsnorm_backward);
}

}  // namespace hearth
