// The experts, one after the other, and of each its segments, from the linear and SwiGLU ops on
// their rows.
#include "base/stream.h"
#include "reference/low_rank.h"
#include "reference/reference_op_set.h"
#include "reference/values.h"

namespace hearth {
namespace {

/// One segment of an expert.
struct Segment {
  size_t expert;
  int64_t segment;
  int64_t begin, count;  // its rows

  template <class V>
  V of(const V& view) const {
    return view.slice(begin, count);
  }
  /// The expert's map for these rows.
  LinearView map(const LinearView& w) const {
    LinearView part = w;
    part.low_rank = w.low_rank.from_row(begin, segment);
    return part;
  }
};

/// f(segment) for all of an expert, expert by expert.
template <class F>
void for_segments(const ExpertRows& rows, size_t experts, int64_t all_rows, const F& f) {
  for (size_t e = 0; e < experts; ++e) {
    for (int64_t s = 0; s < rows.segments; ++s) {
      const auto [begin, end] = rows.rows_of(static_cast<int64_t>(e), s, all_rows);
      f(Segment{e, s, begin, end - begin});
    }
  }
}

/// The segment's rows of x or dy: copied where an index has them.
ConstView input(Stream& stream, const ConstView& x, const ExpertRows& rows, const Segment& s) {
  if (!rows.source) return s.of(x);
  const View copy = take_rows(stream, s.count, x.cols, x.dtype);
  for (int64_t r = 0; r < s.count; ++r) {
    const int64_t from = rows.input_row(s.begin + r);
    for (int64_t i = 0; i < x.cols; ++i) set_value(copy, r, i, value(x, from, i));
  }
  return copy;
}

void experts_forward(Stream& stream, ConstView x, const ExpertRows& rows,
                     std::span<const ExpertView> experts, View gate, View up, View y) {
  for_segments(rows, experts.size(), gate.rows, [&](const Segment& s) {
    Scratch::Frame frame(stream.scratch());
    const ExpertView& expert = experts[s.expert];
    const ConstView in = input(stream, x, rows, s);
    const View h = take_rows(stream, s.count, gate.cols, gate.dtype);
    reference::linear_forward(stream, in, s.map(expert.gate), s.of(gate));
    reference::linear_forward(stream, in, s.map(expert.up), s.of(up));
    reference::swiglu_forward(stream, s.of(gate), s.of(up), h);
    reference::linear_forward(stream, h, s.map(expert.down), s.of(y));
  });
}

// With z = dy W_down of the unweighted dy: the combine weight's gradient is <z, h>, and dh is
// weight * z. `h`, gate, up and what follow are the segment's.
void data_half(Stream& stream, ConstView dy, ConstView row_weight, const Segment& s,
               const ExpertView& expert, View gate, View up, View h, View dx, View drow_weight) {
  Scratch::Frame frame(stream.scratch());
  const View z = take_rows(stream, s.count, gate.cols, gate.dtype);
  const View hidden = take_rows(stream, s.count, gate.cols, gate.dtype);
  reference::linear_dgrad(stream, dy, s.map(expert.down), z, false);
  reference::swiglu_forward(stream, gate, up, h);
  for_type(dy.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t r = 0; r < s.count; ++r) {
      const double weight = row_weight.as<T>()[s.begin + r];
      double sum = 0;
      for (int64_t i = 0; i < h.cols; ++i) sum += double{z.row<T>(r)[i]} * h.row<T>(r)[i];
      drow_weight.as<T>()[s.begin + r] = static_cast<T>(sum);
      for (int64_t i = 0; i < h.cols; ++i) {
        z.row<T>(r)[i] = static_cast<T>(weight * z.row<T>(r)[i]);
        h.row<T>(r)[i] = static_cast<T>(weight * h.row<T>(r)[i]);
      }
    }
  });
  reference::swiglu_backward(stream, z, gate, up, hidden);
  reference::linear_dgrad(stream, gate, s.map(expert.gate), dx, false);
  reference::linear_dgrad(stream, up, s.map(expert.up), dx, true);
}

// The gradient of W_down is dy^T (weight * h), so that both products take the same dy.
void weight_half(Stream& stream, ConstView dy, ConstView x, const Segment& s,
                 const ExpertView& expert, ConstView dgate, ConstView dup, ConstView h,
                 const ExpertGradient& gradient) {
  reference::linear_wgrad(stream, dy, h, s.map(expert.down), gradient.down);
  reference::linear_wgrad(stream, dgate, x, s.map(expert.gate), gradient.gate);
  reference::linear_wgrad(stream, dup, x, s.map(expert.up), gradient.up);
}

void experts_backward(Stream& stream, ConstView dy, ConstView row_weight, ConstView x,
                      const ExpertRows& rows, std::span<const ExpertView> experts, View gate,
                      View up, View dx, View drow_weight,
                      std::span<const ExpertGradient> gradients) {
  for_segments(rows, experts.size(), gate.rows, [&](const Segment& s) {
    Scratch::Frame frame(stream.scratch());
    const View h = take_rows(stream, s.count, gate.cols, gate.dtype);
    const ConstView d_out = input(stream, dy, rows, s), in = input(stream, x, rows, s);
    data_half(stream, d_out, row_weight, s, experts[s.expert], s.of(gate), s.of(up), h, s.of(dx),
              drow_weight);
    weight_half(stream, d_out, in, s, experts[s.expert], s.of(gate), s.of(up), h,
                gradients[s.expert]);
  });
}

void experts_dgrad(Stream& stream, ConstView dy, ConstView row_weight, const ExpertRows& rows,
                   std::span<const ExpertView> experts, View gate, View up, View h, View dx,
                   View drow_weight) {
  for_segments(rows, experts.size(), gate.rows, [&](const Segment& s) {
    Scratch::Frame frame(stream.scratch());
    data_half(stream, input(stream, dy, rows, s), row_weight, s, experts[s.expert], s.of(gate),
              s.of(up), s.of(h), s.of(dx), drow_weight);
  });
}

void experts_wgrad(Stream& stream, ConstView dy, ConstView x, const ExpertRows& rows,
                   std::span<const ExpertView> experts, ConstView dgate, ConstView dup, ConstView h,
                   std::span<const ExpertGradient> gradients) {
  for_segments(rows, experts.size(), dgate.rows, [&](const Segment& s) {
    Scratch::Frame frame(stream.scratch());
    weight_half(stream, input(stream, dy, rows, s), input(stream, x, rows, s), s, experts[s.expert],
                s.of(dgate), s.of(dup), s.of(h), gradients[s.expert]);
  });
}

}  // namespace

void reference::add_experts(OpTable& ops) {
  ops.experts_forward.add(ReferenceOps::kName, experts_forward);
  ops.experts_backward.add(ReferenceOps::kName, experts_backward);
  ops.experts_dgrad.add(ReferenceOps::kName, experts_dgrad);
  ops.experts_wgrad.add(ReferenceOps::kName, experts_wgrad);
}

}  // namespace hearth
