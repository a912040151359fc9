#include <cmath>

#include "reference/reference_op_set.h"
#include "reference/values.h"

namespace hearth {
namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

}  // namespace

void ReferenceOps::swiglu_forward(Stream&, ConstView gate, ConstView up, View h) const {
  HEARTH_CHECK(has_shape(up, gate.rows, gate.cols) && has_shape(h, gate.rows, gate.cols),
               "swiglu_forward: shapes");
  for_type(gate.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t r = 0; r < gate.rows; ++r) {
      for (int64_t i = 0; i < gate.cols; ++i) {
        const double g = gate.row<T>(r)[i], u = up.row<T>(r)[i];
        h.row<T>(r)[i] = static_cast<T>(g * sigmoid(g) * u);
      }
    }
  });
}

// silu(g) = g s with s = sigmoid(g); its derivative is s (1 + g (1 - s)).
void ReferenceOps::swiglu_backward(Stream&, ConstView dh, View gate, View up, View h) const {
  HEARTH_CHECK(has_shape(dh, gate.rows, gate.cols) && has_shape(up, gate.rows, gate.cols) &&
                   has_shape(h, gate.rows, gate.cols),
               "swiglu_backward: shapes");
  for_type(gate.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t r = 0; r < gate.rows; ++r) {
      for (int64_t i = 0; i < gate.cols; ++i) {
        const double d = dh.row<T>(r)[i], g = gate.row<T>(r)[i], u = up.row<T>(r)[i];
        const double s = sigmoid(g);
        gate.row<T>(r)[i] = static_cast<T>(d * u * s * (1 + g * (1 - s)));
        up.row<T>(r)[i] = static_cast<T>(d * g * s);
        h.row<T>(r)[i] = static_cast<T>(g * s * u);
      }
    }
  });
}

void ReferenceOps::add(Stream&, ConstView a, ConstView b, View y) const {
  HEARTH_CHECK(has_shape(a, y.rows, y.cols) && has_shape(b, y.rows, y.cols), "add: shapes");
  for_type(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t r = 0; r < y.rows; ++r) {
      for (int64_t i = 0; i < y.cols; ++i) y.row<T>(r)[i] = a.row<T>(r)[i] + b.row<T>(r)[i];
    }
  });
}

void ReferenceOps::cast(Stream&, ConstView x, View y) const {
  HEARTH_CHECK(has_shape(x, y.rows, y.cols), "cast: shapes");
  for (int64_t r = 0; r < y.rows; ++r) {
    for (int64_t i = 0; i < y.cols; ++i) set_value(y, r, i, value(x, r, i));
  }
}

}  // namespace hearth
