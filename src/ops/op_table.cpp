// The shapes of every op. A call whose arguments do not fit is a bug of the caller on every back end.
#include "ops/op_table.h"

#include <algorithm>

#include "ops/shapes.h"

namespace hearth {
namespace {

bool fit(const AttentionShape& shape, const SequenceOffsets& offsets, const ConstView& q,
         const ConstView& k, const ConstView& v, const ConstView& out, const ConstView& log_sum) {
  const int64_t width = shape.heads * shape.head_dim, kv_width = shape.kv_heads * shape.head_dim;
  const int64_t n = offsets.count();
  return shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0 && has_shape(q, out.rows, width) &&
         out.cols == width && has_shape(v, k.rows, kv_width) && k.cols == kv_width &&
         has_shape(log_sum, q.rows, shape.heads) && n >= 0 && has_shape(offsets.query, 1, n + 1) &&
         has_shape(offsets.key, 1, n + 1);
}

// x, or dy, is a view of all rows, or the index has them.
bool fit(const ExpertRows& rows, size_t experts, const ConstView& x, const ConstView& gate) {
  const auto count = static_cast<int64_t>(experts);
  if (rows.stride > 0) {
    return has_shape(rows.offsets, rows.segments, count + 1) &&
           (rows.segments - 1) * rows.stride <= gate.rows &&
           (rows.source ? has_shape(rows.source, rows.segments, rows.stride) && rows.choices >= 1 &&
                              (rows.segments - 1) * rows.input_stride <= x.rows
                        : x.rows == gate.rows);
  }
  return rows.segments >= 1 && has_shape(rows.offsets, 1, count * rows.segments + 1) &&
         (rows.source ? has_shape(rows.source, 1, gate.rows) && rows.choices >= 1
                      : x.rows == gate.rows);
}

bool is_one_run(const AdamWTensors& t) {
  const auto same = [&](const View& v) { return same_shape(v, t.master) && v.contiguous(); };
  return same(t.master) && same(t.gradient) && same(t.moment1) && same(t.moment2) &&
         (!t.working || same(t.working));
}

}  // namespace

ExpertRows ExpertRows::part(int64_t begin, int64_t end) const {
  if (stride > 0) {
    HEARTH_CHECK(0 <= begin && begin <= end && end < offsets.cols, "experts: a part of the rows");
    ExpertRows rows = *this;
    rows.offsets = {offsets.as<int32_t>() + begin, DType::i32, segments, end - begin + 1,
                    offsets.stride};
    return rows;
  }
  const int64_t first = begin * segments, last = end * segments + 1;
  HEARTH_CHECK(0 <= begin && begin <= end && last <= offsets.cols, "experts: a part of the rows");
  ExpertRows rows = *this;
  rows.offsets = {offsets.as<int32_t>() + first, DType::i32, 1, last - first};
  return rows;
}

ExpertRows ExpertRows::segment(int64_t s, int64_t count) const {
  ExpertRows rows(offsets.slice(s, 1));
  if (!source) return rows;
  return rows.indexed({source.row<int32_t>(s), DType::i32, 1, count}, choices);
}

std::pair<int64_t, int64_t> ExpertRows::rows_of(int64_t expert, int64_t s, int64_t all_rows) const {
  const int32_t* const at =
      stride > 0 ? offsets.row<int32_t>(s) + expert : offsets.as<int32_t>() + expert * segments + s;
  const int64_t first = stride > 0 ? s * stride : 0;
  const int64_t most = stride > 0 && s + 1 < segments ? stride : all_rows - first;
  HEARTH_CHECK(0 <= at[0] && at[0] <= at[1] && at[1] <= most, "experts: offsets");
  return {first + at[0], first + at[1]};
}

OpTable::OpTable() {
  const auto op = [this](std::string_view name, auto& member, auto* shapes) {
    member.declare(name, shapes);
    all_.push_back(&member);
  };
  const auto scratch = [this](std::string_view name, auto& member) {
    member.declare(name);
    all_.push_back(&member);
  };

  op(
      "embedding_forward", embedding_forward, +[](ConstView ids, ConstView table, View out) {
        return has_shape(ids, 1, out.rows) && table.cols == out.cols;
      });
  op(
      "embedding_backward", embedding_backward,
      +[](ConstView ids, ConstView dout, int64_t, View table_gradient) {
        return has_shape(ids, 1, dout.rows) && table_gradient.cols == dout.cols;
      });

  op(
      "embedding_noise", embedding_noise,
      +[](const Noise&, ConstView offsets, View) { return offsets.rows == 1 && offsets.cols > 0; });

  op(
      "rmsnorm_forward", rmsnorm_forward,
      +[](ConstView x, ConstView weight, double, View y, View rstd) {
        return has_shape(weight, 1, x.cols) && same_shape(y, x) && has_shape(rstd, 1, x.rows);
      });
  op(
      "rmsnorm_backward", rmsnorm_backward,
      +[](ConstView dy, ConstView x, ConstView weight, ConstView rstd, View dx,
          View weight_gradient) {
        return same_shape(dy, x) && has_shape(weight, 1, x.cols) && has_shape(rstd, 1, x.rows) &&
               same_shape(dx, x) && empty_or_shape(weight_gradient, 1, x.cols);
      });

  op(
      "linear_forward", linear_forward, +[](ConstView x, const LinearView& w, View y) {
        return has_shape(x, y.rows, w.in()) && y.cols == w.out() && fits(w);
      });
  op(
      "linear_dgrad", linear_dgrad, +[](ConstView dy, const LinearView& w, View dx, bool) {
        return has_shape(dy, dx.rows, w.out()) && dx.cols == w.in() && fits(w);
      });
  op(
      "linear_wgrad", linear_wgrad,
      +[](ConstView dy, ConstView x, const LinearView& w, const LinearGradient& gradient) {
        return dy.rows == x.rows && fits(w) && fits(gradient, dy.cols, x.cols, w.low_rank.rank());
      });

  op(
      "rope", rope,
      +[](View x, int64_t heads, ConstView positions, ConstView cosine, ConstView sine, bool) {
        return x.cols == heads * 2 * cosine.cols && has_shape(positions, 1, x.rows) &&
               same_shape(sine, cosine);
      });

  op(
      "attention_forward", attention_forward,
      +[](const AttentionShape& shape, const SequenceOffsets& offsets, ConstView q, ConstView k,
          ConstView v, View out,
          View log_sum) { return fit(shape, offsets, q, k, v, out, log_sum); });
  op(
      "attention_backward", attention_backward,
      +[](const AttentionShape& shape, const SequenceOffsets& offsets, ConstView dout, ConstView q,
          ConstView k, ConstView v, ConstView out, ConstView log_sum, View dq, View dk, View dv) {
        return fit(shape, offsets, q, k, v, out, log_sum) && same_shape(dout, q) &&
               same_shape(dq, q) && same_shape(dk, k) && same_shape(dv, v);
      });

  op(
      "router_forward", router_forward,
      +[](ConstView logits, bool, View probs, View choice, View weight) {
        return same_shape(probs, logits) && choice.rows == logits.rows &&
               same_shape(weight, choice) && choice.cols <= logits.cols;
      });
  op(
      "router_backward", router_backward,
      +[](ConstView dweight, ConstView probs, ConstView choice, bool, ConstView dprobs,
          View dlogits) {
        return same_shape(dweight, choice) && choice.rows == probs.rows &&
               empty_or_shape(dprobs, 1, probs.cols) && same_shape(dlogits, probs);
      });
  op(
      "router_sums", router_sums, +[](ConstView probs, ConstView choice, View counts, View sums) {
        return choice.rows == probs.rows && has_shape(counts, 1, probs.cols) &&
               has_shape(sums, 1, probs.cols);
      });
  op(
      "router_z_forward", router_z_forward, +[](ConstView logits, View log_sum, View squares) {
        return has_shape(log_sum, logits.rows, 1) && has_shape(squares, 1, 1);
      });
  op(
      "router_z_backward", router_z_backward,
      +[](ConstView log_sum, ConstView probs, double, View dlogits) {
        return has_shape(log_sum, probs.rows, 1) && same_shape(dlogits, probs);
      });
  op(
      "router_losses", router_losses,
      +[](const RouterLosses&, std::span<const ConstView> counts,
          std::span<const ConstView> prob_sums, std::span<const ConstView> squares, View aux,
          View z, View dprobs) {
        const int64_t experts = counts.empty() ? dprobs.cols : counts[0].cols;
        const auto is_row = [&](const ConstView& v) { return has_shape(v, 1, experts); };
        const auto is_one = [](const ConstView& v) { return has_shape(v, 1, 1); };
        return prob_sums.size() == counts.size() &&
               (squares.empty() || squares.size() == counts.size()) &&
               std::ranges::all_of(counts, is_row) && std::ranges::all_of(prob_sums, is_row) &&
               std::ranges::all_of(squares, is_one) && is_one(aux) && is_one(z) &&
               empty_or_shape(dprobs, std::ssize(counts), experts);
      });

  op(
      "route", route,
      +[](ConstView choice, ConstView position, View offsets, View source, View row_of) {
        return offsets.rows == 1 && offsets.cols > 0 && has_shape(source, 1, choice.size()) &&
               same_shape(row_of, choice) && empty_or_shape(position, 1, offsets.cols - 1);
      });
  op(
      "permute", permute, +[](ConstView x, ConstView source, ConstView part, View rows) {
        return has_shape(rows, source.cols, x.cols) && (x.rows == 0 || rows.rows % x.rows == 0) &&
               (!part || (part.rows == 1 && part.cols > 0 && part.dtype == DType::i32));
      });
  op(
      "combine", combine,
      +[](ConstView rows, const RoutingView& routing, ConstView weight, ConstView base, View out) {
        return rows.rows == routing.row_of.size() &&
               has_shape(out, routing.row_of.rows, rows.cols) &&
               (!routing.offsets || (routing.offsets.rows == 1 && routing.offsets.cols > 0 &&
                                     routing.offsets.dtype == DType::i32)) &&
               empty_or_shape(weight, out.rows, routing.row_of.cols) &&
               empty_or_shape(base, out.rows, out.cols);
      });

  op(
      "experts_forward", experts_forward,
      +[](ConstView x, const ExpertRows& rows, std::span<const ExpertView> experts, View gate,
          View up, View y) {
        return fit(rows, experts.size(), x, gate) && same_shape(up, gate) &&
               has_shape(y, gate.rows, x.cols);
      });
  op(
      "experts_backward", experts_backward,
      +[](ConstView dy, ConstView row_weight, ConstView x, const ExpertRows& rows,
          std::span<const ExpertView> experts, View gate, View up, View dx, View drow_weight,
          std::span<const ExpertGradient> gradients) {
        return fit(rows, experts.size(), x, gate) && same_shape(up, gate) && same_shape(dy, x) &&
               has_shape(dx, gate.rows, x.cols) && has_shape(row_weight, 1, gate.rows) &&
               has_shape(drow_weight, 1, gate.rows) && gradients.size() == experts.size();
      });
  op(
      "experts_dgrad", experts_dgrad,
      +[](ConstView dy, ConstView row_weight, const ExpertRows& rows,
          std::span<const ExpertView> experts, View gate, View up, View h, View dx,
          View drow_weight) {
        return fit(rows, experts.size(), dy, gate) && same_shape(up, gate) && same_shape(h, gate) &&
               has_shape(dx, gate.rows, dy.cols) && has_shape(row_weight, 1, gate.rows) &&
               has_shape(drow_weight, 1, gate.rows);
      });
  op(
      "experts_wgrad", experts_wgrad,
      +[](ConstView dy, ConstView x, const ExpertRows& rows, std::span<const ExpertView> experts,
          ConstView dgate, ConstView dup, ConstView h, std::span<const ExpertGradient> gradients) {
        return fit(rows, experts.size(), x, dgate) && same_shape(dup, dgate) &&
               same_shape(h, dgate) && same_shape(dy, x) && gradients.size() == experts.size();
      });
  op(
      "to_expert_order", to_expert_order,
      +[](ConstView values, const RoutingView& routing, View rows) {
        return same_shape(values, routing.row_of) && has_shape(rows, 1, routing.source.cols);
      });
  op(
      "to_token_order", to_token_order,
      +[](ConstView rows, const RoutingView& routing, View values) {
        return same_shape(values, routing.row_of) && has_shape(rows, 1, routing.source.cols);
      });

  op(
      "swiglu_forward", swiglu_forward, +[](ConstView gate, ConstView up, View h) {
        return same_shape(up, gate) && same_shape(h, gate);
      });
  op(
      "swiglu_backward", swiglu_backward, +[](ConstView dh, View gate, View up, View h) {
        return same_shape(dh, gate) && same_shape(up, gate) && same_shape(h, gate);
      });
  op(
      "sigmoid_gate_forward", sigmoid_gate_forward, +[](ConstView logits, ConstView x, View y) {
        return has_shape(logits, 1, x.rows) && same_shape(y, x);
      });
  op(
      "sigmoid_gate_backward", sigmoid_gate_backward,
      +[](ConstView dy, ConstView logits, ConstView y, View dlogits, View dx) {
        return same_shape(dy, y) && has_shape(logits, 1, y.rows) && has_shape(dlogits, 1, y.rows) &&
               same_shape(dx, y);
      });
  op(
      "clamp_forward", clamp_forward,
      +[](ConstView x, double, View y) { return same_shape(y, x); });
  op(
      "clamp_backward", clamp_backward, +[](ConstView dy, ConstView x, double, View dx) {
        return same_shape(dy, x) && same_shape(dx, x);
      });
  op(
      "add", add,
      +[](ConstView a, ConstView b, View y) { return same_shape(a, y) && same_shape(b, y); });
  op(
      "cast", cast, +[](ConstView x, View y) { return same_shape(x, y); });
  op(
      "clear", clear, +[](View) { return true; });

  op(
      "cross_entropy", cross_entropy,
      +[](ConstView x, const LinearView& head, const Labels& labels, double, View loss, View dx,
          const LinearGradient& gradient) {
        return x.cols == head.in() && has_shape(labels.ids, 1, x.rows) && has_shape(loss, 1, 1) &&
               empty_or_shape(dx, x.rows, head.in()) &&
               empty_or_shape(gradient.weight, head.out(), head.in());
      });

  op(
      "sum_squares", sum_squares, +[](std::span<const ConstView> x, View out) {
        return has_shape(out, 1, std::ssize(x)) &&
               std::ranges::all_of(x, [](const ConstView& v) { return v.contiguous(); });
      });
  op(
      "adamw", adamw, +[](const AdamWOptions& options, std::span<const AdamWTensors> tensors) {
        return options.step >= 1 && std::ranges::all_of(tensors, is_one_run);
      });

  scratch("linear_scratch", linear_scratch);
  scratch("experts_scratch", experts_scratch);
  scratch("attention_scratch", attention_scratch);
  scratch("cross_entropy_scratch", cross_entropy_scratch);
  scratch("sum_squares_scratch", sum_squares_scratch);
  scratch("router_losses_scratch", router_losses_scratch);
  scratch("row_scratch", row_scratch);
}

}  // namespace hearth
