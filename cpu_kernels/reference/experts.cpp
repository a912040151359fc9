// The experts, one after the other, from the linear and SwiGLU ops on their rows.
#include "base/stream.h"
#include "reference/low_rank.h"
#include "reference/reference_op_set.h"
#include "reference/values.h"

namespace hearth {
namespace {

/// Rows of expert e.
struct Rows {
  int64_t begin, count;
  Rows(const ConstView& offsets, int64_t e)
      : begin(offsets.as<int32_t>()[e]), count(offsets.as<int32_t>()[e + 1] - begin) {
    HEARTH_CHECK(begin >= 0 && count >= 0, "experts: offsets");
  }
};

/// An expert's map for its rows, which begin here.
LinearView for_rows(const LinearView& w, const Rows& rows) {
  LinearView map = w;
  map.low_rank = w.low_rank.from_row(rows.begin);
  return map;
}

void check_offsets(const ConstView& offsets, size_t experts, const ConstView& x) {
  HEARTH_CHECK(offsets.as<int32_t>()[experts] <= x.rows, "experts: offsets");
}

void experts_forward(Stream& stream, ConstView x, ConstView offsets,
                     std::span<const ExpertView> experts, View gate, View up, View y) {
  check_offsets(offsets, experts.size(), x);
  for (size_t e = 0; e < experts.size(); ++e) {
    const Rows r(offsets, static_cast<int64_t>(e));
    Scratch::Frame frame(stream.scratch());
    const auto of = [&](const auto& view) { return view.slice(r.begin, r.count); };
    const View h = take_rows(stream, r.count, gate.cols, gate.dtype);
    reference::linear_forward(stream, of(x), for_rows(experts[e].gate, r), of(gate));
    reference::linear_forward(stream, of(x), for_rows(experts[e].up, r), of(up));
    reference::swiglu_forward(stream, of(gate), of(up), h);
    reference::linear_forward(stream, h, for_rows(experts[e].down, r), of(y));
  }
}

// With z = dy W_down of the unweighted dy: the combine weight's gradient is <z, h>, and dh is
// weight * z. The gradient of W_down is dy^T (weight * h), so that both products take the same dy.
void experts_backward(Stream& stream, ConstView dy, ConstView row_weight, ConstView x,
                      ConstView offsets, std::span<const ExpertView> experts, View gate, View up,
                      View dx, View drow_weight, std::span<const ExpertGradient> gradients) {
  check_offsets(offsets, experts.size(), x);
  for (size_t e = 0; e < experts.size(); ++e) {
    const Rows rows(offsets, static_cast<int64_t>(e));
    const auto of = [&](const auto& view) { return view.slice(rows.begin, rows.count); };
    Scratch::Frame frame(stream.scratch());
    const LinearView gate_map = for_rows(experts[e].gate, rows);
    const LinearView up_map = for_rows(experts[e].up, rows);
    const LinearView down_map = for_rows(experts[e].down, rows);
    const View z = take_rows(stream, rows.count, gate.cols, gate.dtype);
    const View h = take_rows(stream, rows.count, gate.cols, gate.dtype);
    reference::linear_dgrad(stream, of(dy), down_map, z, false);
    reference::swiglu_forward(stream, of(gate), of(up), h);
    for_type(dy.dtype, [&](auto zero) {
      using T = decltype(zero);
      for (int64_t r = 0; r < rows.count; ++r) {
        const double weight = row_weight.as<T>()[rows.begin + r];
        double sum = 0;
        for (int64_t i = 0; i < h.cols; ++i) sum += double{z.row<T>(r)[i]} * h.row<T>(r)[i];
        drow_weight.as<T>()[rows.begin + r] = static_cast<T>(sum);
        for (int64_t i = 0; i < h.cols; ++i) {
          z.row<T>(r)[i] = static_cast<T>(weight * z.row<T>(r)[i]);
          h.row<T>(r)[i] = static_cast<T>(weight * h.row<T>(r)[i]);
        }
      }
    });
    reference::linear_wgrad(stream, of(dy), h, down_map, gradients[e].down);
    reference::swiglu_backward(stream, z, of(gate), of(up), h);
    reference::linear_wgrad(stream, of(gate), of(x), gate_map, gradients[e].gate);
    reference::linear_wgrad(stream, of(up), of(x), up_map, gradients[e].up);
    reference::linear_dgrad(stream, of(gate), gate_map, of(dx), false);
    reference::linear_dgrad(stream, of(up), up_map, of(dx), true);
  }
}

}  // namespace

void reference::add_experts(OpTable& ops) {
  ops.experts_forward.add(ReferenceOps::kName, experts_forward);
  ops.experts_backward.add(ReferenceOps::kName, experts_backward);
}

}  // namespace hearth
