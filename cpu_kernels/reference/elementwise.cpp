#include <cmath>

#include "reference/reference_op_set.h"
#include "reference/values.h"

namespace hearth {
namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

void sigmoid_gate_forward(Stream&, ConstView logits, ConstView x, View y) {
  for_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t t = 0; t < x.rows; ++t) {
      const double s = sigmoid(logits.as<T>()[t]);
      for (int64_t i = 0; i < x.cols; ++i) y.row<T>(t)[i] = static_cast<T>(s * x.row<T>(t)[i]);
    }
  });
}

// The derivative of s = sigmoid(l) is s (1 - s), and s x is y.
void sigmoid_gate_backward(Stream&, ConstView dy, ConstView logits, ConstView y, View dlogits,
                           View dx) {
  for_type(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t t = 0; t < y.rows; ++t) {
      const double logit = logits.as<T>()[t], s = sigmoid(logit);
      double sum = 0;
      for (int64_t i = 0; i < y.cols; ++i) {
        const double d = dy.row<T>(t)[i];
        sum += d * y.row<T>(t)[i];
        dx.row<T>(t)[i] = static_cast<T>(s * d);
      }
      dlogits.as<T>()[t] = static_cast<T>(sigmoid(-logit) * sum);  // 1 - s, not cancelled
    }
  });
}

void clamp_forward(Stream&, ConstView x, double limit, View y) {
  for_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T most = static_cast<T>(limit);
    for (int64_t r = 0; r < x.rows; ++r) {
      for (int64_t i = 0; i < x.cols; ++i) {
        const T e = x.row<T>(r)[i];
        y.row<T>(r)[i] = e < -most ? -most : e > most ? most : e;
      }
    }
  });
}

void clamp_backward(Stream&, ConstView dy, ConstView x, double limit, View dx) {
  for_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T most = static_cast<T>(limit);
    for (int64_t r = 0; r < x.rows; ++r) {
      for (int64_t i = 0; i < x.cols; ++i) {
        dx.row<T>(r)[i] = std::abs(x.row<T>(r)[i]) <= most ? dy.row<T>(r)[i] : T{0};
      }
    }
  });
}

void add(Stream&, ConstView a, ConstView b, View y) {
  for_type(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t r = 0; r < y.rows; ++r) {
      for (int64_t i = 0; i < y.cols; ++i) y.row<T>(r)[i] = a.row<T>(r)[i] + b.row<T>(r)[i];
    }
  });
}

void cast(Stream&, ConstView x, View y) {
  for (int64_t r = 0; r < y.rows; ++r) {
    for (int64_t i = 0; i < y.cols; ++i) set_value(y, r, i, value(x, r, i));
  }
}

void clear(Stream&, View x) {
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.cols; ++c) {
      if (x.dtype == DType::i32) {
        x.row<int32_t>(r)[c] = 0;
      } else {
        set_value(x, r, c, 0);
      }
    }
  }
}

}  // namespace

void reference::swiglu_forward(Stream&, ConstView gate, ConstView up, View h) {
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
void reference::swiglu_backward(Stream&, ConstView dh, View gate, View up, View h) {
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

void reference::add_elementwise(OpTable& ops) {
  ops.swiglu_forward.add(ReferenceOps::kName, reference::swiglu_forward);
  ops.swiglu_backward.add(ReferenceOps::kName, reference::swiglu_backward);
  ops.sigmoid_gate_forward.add(ReferenceOps::kName, sigmoid_gate_forward);
  ops.sigmoid_gate_backward.add(ReferenceOps::kName, sigmoid_gate_backward);
  ops.clamp_forward.add(ReferenceOps::kName, clamp_forward);
  ops.clamp_backward.add(ReferenceOps::kName, clamp_backward);
  ops.add.add(ReferenceOps::kName, add);
  ops.cast.add(ReferenceOps::kName, cast);
  ops.clear.add(ReferenceOps::kName, clear);
}

}  // namespace hearth
