#include "reference/reference_op_set.h"
#include "reference/values.h"

namespace hearth {

void ReferenceOps::linear_forward(Stream&, ConstView x, const LinearView& w, View y) const {
  HEARTH_CHECK(
      has_shape(x, y.rows, w.in()) && y.cols == w.out() && empty_or_shape(w.bias, 1, w.out()),
      "linear_forward: shapes");
  for_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t t = 0; t < x.rows; ++t) {
      for (int64_t o = 0; o < w.out(); ++o) {
        double sum = w.bias ? value(w.bias, 0, o) : 0.0;
        for (int64_t i = 0; i < w.in(); ++i) {
          sum += operand(x.row<T>(t)[i], w.compute) * operand(value(w.weight, o, i), w.compute);
        }
        y.row<T>(t)[o] = static_cast<T>(sum);
      }
    }
  });
}

void ReferenceOps::linear_dgrad(Stream&, ConstView dy, const LinearView& w, View dx,
                                bool accumulate) const {
  HEARTH_CHECK(has_shape(dy, dx.rows, w.out()) && dx.cols == w.in(), "linear_dgrad: shapes");
  for_type(dy.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t t = 0; t < dy.rows; ++t) {
      for (int64_t i = 0; i < w.in(); ++i) {
        double sum = accumulate ? dx.row<T>(t)[i] : 0.0;
        for (int64_t o = 0; o < w.out(); ++o) {
          sum += operand(dy.row<T>(t)[o], w.compute) * operand(value(w.weight, o, i), w.compute);
        }
        dx.row<T>(t)[i] = static_cast<T>(sum);
      }
    }
  });
}

// The bias is added, not multiplied: its gradient sums dy unrounded.
void ReferenceOps::linear_wgrad(Stream&, ConstView dy, ConstView x, Compute compute,
                                View weight_gradient, View bias_gradient) const {
  HEARTH_CHECK(dy.rows == x.rows && empty_or_shape(weight_gradient, dy.cols, x.cols) &&
                   empty_or_shape(bias_gradient, 1, dy.cols),
               "linear_wgrad: shapes");
  for_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t o = 0; o < dy.cols && weight_gradient; ++o) {
      for (int64_t i = 0; i < x.cols; ++i) {
        double sum = 0;
        for (int64_t t = 0; t < x.rows; ++t) {
          sum += operand(dy.row<T>(t)[o], compute) * operand(x.row<T>(t)[i], compute);
        }
        add_value(weight_gradient, o, i, sum);
      }
    }
    for (int64_t o = 0; o < dy.cols && bias_gradient; ++o) {
      double sum = 0;
      for (int64_t t = 0; t < dy.rows; ++t) sum += dy.row<T>(t)[o];
      add_value(bias_gradient, 0, o, sum);
    }
  });
}

}  // namespace hearth
