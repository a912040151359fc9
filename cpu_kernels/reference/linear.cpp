#include "base/stream.h"
#include "ops/dropout.h"
#include "reference/low_rank.h"
#include "reference/reference_op_set.h"
#include "reference/values.h"

namespace hearth {
namespace {

/// gradient [dy.cols, x.cols] += dy^T x.
void add_products(ConstView dy, ConstView x, Compute compute, View gradient) {
  for_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t o = 0; o < dy.cols && gradient; ++o) {
      for (int64_t i = 0; i < x.cols; ++i) {
        double sum = 0;
        for (int64_t t = 0; t < x.rows; ++t) {
          sum += operand(dy.row<T>(t)[o], compute) * operand(x.row<T>(t)[i], compute);
        }
        add_value(gradient, o, i, sum);
      }
    }
  });
}

}  // namespace

void reference::linear_forward(Stream& stream, ConstView x, const LinearView& w, View y) {
  Scratch::Frame frame(stream.scratch());
  const View u = w.low_rank ? low_rank_input(stream, x, w) : View();
  for_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t t = 0; t < x.rows; ++t) {
      for (int64_t o = 0; o < w.out(); ++o) {
        double sum = w.bias ? value(w.bias, 0, o) : 0.0;
        for (int64_t i = 0; i < w.in(); ++i) {
          sum += operand(x.row<T>(t)[i], w.compute) * operand(value(w.weight, o, i), w.compute);
        }
        for (int64_t j = 0; j < u.cols; ++j) {
          sum += operand(u.row<T>(t)[j], w.compute) * operand(value(w.low_rank.b, o, j), w.compute);
        }
        y.row<T>(t)[o] = static_cast<T>(sum);
      }
    }
  });
}

void reference::linear_dgrad(Stream& stream, ConstView dy, const LinearView& w, View dx,
                             bool accumulate) {
  Scratch::Frame frame(stream.scratch());
  const View v = w.low_rank ? low_rank_output(stream, dy, w) : View();
  const View of_pair = w.low_rank ? take_rows(stream, 1, w.in(), dy.dtype) : View();
  for_type(dy.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t t = 0; t < dy.rows; ++t) {
      for (int64_t i = 0; i < of_pair.cols; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < v.cols; ++j) {
          sum += operand(v.row<T>(t)[j], w.compute) * operand(value(w.low_rank.a, j, i), w.compute);
        }
        of_pair.as<T>()[i] = static_cast<T>(sum);
      }
      if (of_pair && w.low_rank.dropout) {
        drop_row(w.low_rank.dropout, t, 0, of_pair.as<T>(), of_pair.as<T>(), of_pair.cols);
      }
      for (int64_t i = 0; i < w.in(); ++i) {
        double sum = accumulate ? dx.row<T>(t)[i] : 0.0;
        for (int64_t o = 0; o < w.out(); ++o) {
          sum += operand(dy.row<T>(t)[o], w.compute) * operand(value(w.weight, o, i), w.compute);
        }
        if (of_pair) sum += of_pair.as<T>()[i];
        dx.row<T>(t)[i] = static_cast<T>(sum);
      }
    }
  });
}

// The bias is added, not multiplied: its gradient sums dy unrounded.
void reference::linear_wgrad(Stream& stream, ConstView dy, ConstView x, const LinearView& w,
                             const LinearGradient& gradient) {
  add_products(dy, x, w.compute, gradient.weight);
  for (int64_t o = 0; o < dy.cols && gradient.bias; ++o) {
    double sum = 0;
    for (int64_t t = 0; t < dy.rows; ++t) sum += value(dy, t, o);
    add_value(gradient.bias, 0, o, sum);
  }
  if (!gradient.a && !gradient.b) return;
  Scratch::Frame frame(stream.scratch());
  if (gradient.a) {
    add_products(low_rank_output(stream, dy, w), dropped(stream, x, w.low_rank.dropout), w.compute,
                 gradient.a);
  }
  if (gradient.b) add_products(dy, low_rank_input(stream, x, w), w.compute, gradient.b);
}

void reference::add_linear(OpTable& ops) {
  ops.linear_forward.add(ReferenceOps::kName, reference::linear_forward);
  ops.linear_dgrad.add(ReferenceOps::kName, reference::linear_dgrad);
  ops.linear_wgrad.add(ReferenceOps::kName, reference::linear_wgrad);
}

}  // namespace hearth
