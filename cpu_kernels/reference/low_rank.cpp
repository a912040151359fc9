#include "reference/low_rank.h"

#include "ops/dropout.h"
#include "reference/values.h"

namespace hearth {

View take_rows(Stream& stream, int64_t rows, int64_t cols, DType activations) {
  void* data = activations == DType::f64
                   ? static_cast<void*>(stream.scratch().take<double>(rows * cols))
                   : static_cast<void*>(stream.scratch().take<float>(rows * cols));
  return {data, activations, rows, cols};
}

ConstView dropped(Stream& stream, ConstView x, const Dropout& dropout) {
  if (!dropout) return x;
  const View kept = take_rows(stream, x.rows, x.cols, x.dtype);
  for_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t r = 0; r < x.rows; ++r) {
      drop_row(dropout, r, 0, x.row<T>(r), kept.row<T>(r), x.cols);
    }
  });
  return kept;
}

View low_rank_input(Stream& stream, ConstView x, const LinearView& w) {
  const LowRank& p = w.low_rank;
  const View u = take_rows(stream, x.rows, p.rank(), x.dtype);
  const ConstView kept = dropped(stream, x, p.dropout);
  for (int64_t t = 0; t < x.rows; ++t) {
    for (int64_t j = 0; j < p.rank(); ++j) {
      double sum = 0;
      for (int64_t i = 0; i < x.cols; ++i) {
        sum += operand(value(kept, t, i), w.compute) * operand(value(p.a, j, i), w.compute);
      }
      set_value(u, t, j, p.scale * sum);
    }
  }
  return u;
}

View low_rank_output(Stream& stream, ConstView dy, const LinearView& w) {
  const LowRank& p = w.low_rank;
  const View v = take_rows(stream, dy.rows, p.rank(), dy.dtype);
  for (int64_t t = 0; t < dy.rows; ++t) {
    for (int64_t j = 0; j < p.rank(); ++j) {
      double sum = 0;
      for (int64_t o = 0; o < dy.cols; ++o) {
        sum += operand(value(dy, t, o), w.compute) * operand(value(p.b, o, j), w.compute);
      }
      set_value(v, t, j, p.scale * sum);
    }
  }
  return v;
}

}  // namespace hearth
