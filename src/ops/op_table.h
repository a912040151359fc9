// The ops: every mathematical operation of a training step, each with its backward.
//
// Each op is declared here and nowhere else. `OpTable` states its formula, types and aliasing;
// op_table.cpp states its shapes, which are checked before any implementation runs. Back ends add
// implementations (op.h): cpu_kernels/reference (plain loops, f32 and f64), cpu_kernels (packed
// products, oneDNN for bf16) and gpu_kernels. Each op has one test definition (tests/ops), which
// runs on all back ends.
//
// Conventions. T tokens, H hidden size, V vocabulary, E experts, k experts per token, R = T*k rows
// of routed tokens, N sequences. Activations are f32 (f64 in checks by the reference); weights have
// any stored type. Outputs are overwritten unless the comment says "adds to". Weight gradients are
// f32; ops always add to them. Inputs and outputs never overlap unless the comment says so. An op
// creates no threads: it cuts tiles by shape alone and the stream's pool runs them, so results do
// not depend on the number of workers. A wrong shape or type is a bug (std::logic_error), not an
// input error.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/stream.h"
#include "ops/noise.h"
#include "ops/op.h"
#include "ops/view.h"

namespace hearth {

/// Scratch bytes that an op takes: `shared` once, `per_worker` for each worker. For ops that run
/// one after the other, take the maximum.
struct ScratchNeed {
  size_t shared = 0;
  size_t per_worker = 0;
};
inline ScratchNeed max_of(ScratchNeed a, ScratchNeed b) {
  return {a.shared > b.shared ? a.shared : b.shared,
          a.per_worker > b.per_worker ? a.per_worker : b.per_worker};
}

/// Packed sequences: sequence n has the query rows [query[n], query[n+1]) and the key rows [key[n],
/// key[n+1]), int32 [1, N+1]. In training both offsets are equal. Decoding has fewer queries: the
/// last positions of each sequence.
struct SequenceOffsets {
  ConstView query, key;
  int64_t count() const { return query.cols - 1; }
};

/// The shape of an attention op: `heads` query heads share `kv_heads` key-value heads, all of size
/// `head_dim`. `window` > 0: a query sees the last `window` keys up to its own position; 0: all
/// keys up to it. With `compute` bf16, operands of products may be rounded to bf16: q, k, v, dout,
/// the softmax weights and their gradients. Sums, softmax and log_sum are f32. A back end may be
/// more precise.
struct AttentionShape {
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t window = 0;
  double scale = 0;  // multiplies q.k before softmax
  Compute compute = Compute::f32;
};

/// The rows of routed tokens sorted by expert, tokens in order within an expert. Made by `route`, which
/// may be given another order of the experts than that of their numbers.
struct RoutingView {
  ConstView offsets;  // i32 [1, E+1]: rows of the e-th expert are [offsets[e], offsets[e+1])
  ConstView source;   // i32 [1, R]: row r is choice source[r] = t * k + j, token t's j-th
  ConstView row_of;   // i32 [T, k]: the row of choice (t, j)
};

/// The rows of the experts that an op computes: all experts of a layer or any of them, in any order.
/// Expert i of the call has its rows in segments, one for each micro-batch: segment s is the rows
/// [offsets[i * segments + s], offsets[i * segments + s + 1]) of the views. The first offset need
/// not be 0: ops neither read nor write the rows before the first offset and behind the last, so a
/// part of a layer's experts takes its piece of the layer's offsets and the views of all rows.
///
/// With a stride the segments lie apart, as tasks wrote them one by one: segment s of the views begins
/// at row s * stride and has offsets of its own, so that its rows of expert i are [s * stride +
/// offsets[s, i], s * stride + offsets[s, i + 1]).
///
/// A segment is the unit of rounding: no product sums a weight gradient over two. An expert's
/// weight gradients and a row's results have the same bits whatever other experts, segments and
/// rows are in the call.
struct ExpertRows {
  ConstView offsets;  // i32 [1, experts * segments + 1]; with a stride [segments, experts + 1]
  int64_t segments = 1;
  int64_t stride = 0;  // rows from one segment to the next; 0: segments are neighbours
  /// The indexed form: row r of x and of dy is their row source[r] / choices (RoutingView::source
  /// with the experts per token), so that nobody copies them into expert order. i32 [1, R]. With a
  /// stride [segments, stride]: each segment's source counts from its own first row of x and of dy,
  /// which is `input_stride` rows behind that of the segment before. The last segment may have
  /// fewer than `stride` numbers.
  ConstView source = {};
  int64_t choices = 1;
  int64_t input_stride = 0;

  ExpertRows(ConstView of_experts, int64_t segments_each = 1)
      : offsets(of_experts), segments(segments_each) {}
  static ExpertRows apart(ConstView of_segments, int64_t rows_between) {
    ExpertRows rows(of_segments, of_segments.rows);
    rows.stride = rows_between;
    return rows;
  }
  ExpertRows indexed(ConstView by_source, int64_t choices_each, int64_t inputs_between = 0) const {
    ExpertRows rows = *this;
    rows.source = by_source;
    rows.choices = choices_each;
    rows.input_stride = inputs_between;
    return rows;
  }
  /// Those of experts [begin, end) of the call.
  ExpertRows part(int64_t begin, int64_t end) const;
  /// Those of one segment of the form with a stride, whose views begin with the segment and have
  /// `count` rows of it.
  ExpertRows segment(int64_t s, int64_t count) const;
  /// The row of x and of dy that stands in row r of the other views. For code that reaches the index.
  int64_t input_row(int64_t r) const {
    if (!source) return r;
    const int64_t s = stride > 0 ? r / stride : 0;
    return s * input_stride + source.row<int32_t>(s)[r - s * stride] / choices;
  }
  /// The rows [begin, end) of the views that a segment of an expert of the call has. For code that
  /// reaches the offsets; a bug if they are not within `all_rows`.
  std::pair<int64_t, int64_t> rows_of(int64_t expert, int64_t s, int64_t all_rows) const;
};

/// One AdamW update (torch.optim.AdamW's rule): decoupled decay lr*wd*w, then
/// w -= lr * (m / c1) / (sqrt(v / c2) + eps) with c1 = 1 - beta1^step, c2 = 1 - beta2^step.
struct AdamWOptions {
  double lr = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  int64_t step = 1;           // from 1
  double gradient_scale = 1;  // the clip factor
};

/// The data of an AdamW update of one tensor, or of a run of tensors: contiguous views of one
/// shape. Views of different updates do not overlap.
struct AdamWTensors {
  View gradient, master, moment1, moment2;
  View working = {};  // may be empty
};

/// The labels of T rows: ids i32 [1, T], -100 = not trained. The caller can bound the number of
/// trained rows. The bound saves work on a device, whose host does not know the actual number.
struct Labels {
  ConstView ids;
  int64_t most_trained;  // upper bound; more trained rows are a bug

  Labels(ConstView labels) : Labels(labels, labels.cols) {}
  Labels(ConstView labels, int64_t most) : ids(labels), most_trained(most) {}
};

/// The router's losses over a micro-batch.
struct RouterLosses {
  bool pooled = false;    // pool the layers, like transformers
  double tokens = 0;      // T, of the micro-batch
  double aux_weight = 0;  // factor of the auxiliary loss in the total loss
};

class OpTable {
 public:
  OpTable();
  OpTable(const OpTable&) = delete;
  OpTable& operator=(const OpTable&) = delete;

  /// Every op and every bound of scratch.
  const std::vector<const AnyOp*>& all_ops() const { return all_; }

  // ---- embedding -----------------------------------------------------------------------------
  /// out[t] = table[ids[t]]; ids i32 [1, T], table [V, H] of any stored type, out [T, H].
  Op<void(Stream&, ConstView ids, ConstView table, View out)> embedding_forward;
  /// table_gradient[ids[t]] += dout[t], tokens in order. The row of the id `padding` (-1: none)
  /// gets no gradient from lookups (torch's padding_idx).
  Op<void(Stream&, ConstView ids, ConstView dout, int64_t padding, View table_gradient)>
      embedding_backward;

  /// Adds NEFTune's noise (ops/noise.h) to x [T, H]. Document d has the rows [offsets[d],
  /// offsets[d + 1]); i32 [1, documents + 1]. The gradient passes through.
  Op<void(Stream&, const Noise&, ConstView offsets, View x)> embedding_noise;

  // ---- norm ----------------------------------------------------------------------------------
  /// y = x * rstd * weight, rstd = (mean(x^2) + eps)^-1/2 per row; x, y [M, D], weight [1, D] of
  /// any stored type, rstd [1, M]. y may be x.
  Op<void(Stream&, ConstView x, ConstView weight, double eps, View y, View rstd)> rmsnorm_forward;
  /// dx from dy; adds to weight_gradient [1, D] unless it is empty. dx may be dy. The weight
  /// gradient is summed in fixed blocks of rows.
  Op<void(Stream&, ConstView dy, ConstView x, ConstView weight, ConstView rstd, View dx,
          View weight_gradient)>
      rmsnorm_backward;

  // ---- linear --------------------------------------------------------------------------------
  /// y = x W^T + b + scale * (drop(x) A^T) B^T; absent parts of the map add nothing.
  /// x [M, in], y [M, out].
  Op<void(Stream&, ConstView x, const LinearView& w, View y)> linear_forward;
  /// dx = dy W + drop(scale * (dy B) A), or dx += ... with `accumulate`; dy [M, out], dx [M, in].
  Op<void(Stream&, ConstView dy, const LinearView& w, View dx, bool accumulate)> linear_dgrad;
  /// Adds to the gradients that are not empty:
  ///   W += dy^T x;  b += column sums of dy;  A += (scale * dy B)^T drop(x);
  ///   B += dy^T (scale * drop(x) A^T).
  /// f32 sums over fixed blocks of rows, in order.
  Op<void(Stream&, ConstView dy, ConstView x, const LinearView& w, const LinearGradient& gradient)>
      linear_wgrad;

  // ---- rope ----------------------------------------------------------------------------------
  /// Rotates each head of x [T, heads * d] in place, halves convention: (x1, x2) becomes
  /// (x1 c - x2 s, x2 c + x1 s) with c, s = cosine, sine [positions, d/2] at row positions[t].
  /// `inverse` rotates back, for the backward.
  Op<void(Stream&, View x, int64_t heads, ConstView positions, ConstView cosine, ConstView sine,
          bool inverse)>
      rope;

  // ---- attention -----------------------------------------------------------------------------
  /// Causal softmax attention within each sequence; the full score matrix is never stored. q, out
  /// [Tq, heads * d]; k, v [Tk, kv_heads * d]; log_sum [Tq, heads] keeps log sum exp of the scaled
  /// scores for the backward. Query i of a sequence with n queries and m keys sees keys up to
  /// m - n + i.
  Op<void(Stream&, const AttentionShape&, const SequenceOffsets&, ConstView q, ConstView k,
          ConstView v, View out, View log_sum)>
      attention_forward;
  /// dq, dk, dv from dout. Needs q, k, v, out and log_sum of the forward.
  Op<void(Stream&, const AttentionShape&, const SequenceOffsets&, ConstView dout, ConstView q,
          ConstView k, ConstView v, ConstView out, ConstView log_sum, View dq, View dk, View dv)>
      attention_backward;

  // ---- router --------------------------------------------------------------------------------
  /// probs = softmax(logits) [T, E]; choice i32 [T, k]: the k largest, largest first, the lowest
  /// index on ties; weight [T, k]: their probabilities, divided by their sum if `normalize`.
  Op<void(Stream&, ConstView logits, bool normalize, View probs, View choice, View weight)>
      router_forward;
  /// dlogits [T, E] from dweight [T, k]; choices are constants. `dprobs` f32/f64 [1, E], the
  /// gradient of the auxiliary loss, is added to every row's gradient of probs; empty = none.
  Op<void(Stream&, ConstView dweight, ConstView probs, ConstView choice, bool normalize,
          ConstView dprobs, View dlogits)>
      router_backward;
  /// Sums for the auxiliary loss: counts[e] = number of choices of e, prob_sums[e] = sum of
  /// probs[t, e]; both f64 [1, E], overwritten.
  Op<void(Stream&, ConstView probs, ConstView choice, View counts, View prob_sums)> router_sums;

  /// Router z-loss (ST-MoE, arXiv 2202.08906, equation 5): log_sum [T, 1] is log sum exp of a row
  /// of logits [T, E]; `squares` f64 [1, 1] the sum of their squares over the rows, overwritten.
  Op<void(Stream&, ConstView logits, View log_sum, View squares)> router_z_forward;
  /// dlogits += scale * d squares / d logits; probs from router_forward.
  Op<void(Stream&, ConstView log_sum, ConstView probs, double scale, View dlogits)>
      router_z_backward;

  /// The losses of M layers, T tokens each, from their sums: counts[l] and prob_sums[l], f64 [1, E]
  /// (router_sums), squares[l], f64 [1, 1] (router_z_forward; none: no z-loss). With
  /// f = counts / T, P = prob_sums / T, both replaced by their mean over the layers if `pooled`:
  ///   aux = E / M * sum over layers, in order, and experts of f P;   z = sum of squares / (M T)
  /// both f64 [1, 1], zero if M is 0. Unless dprobs [M, E] (type of activations) is empty, it gets
  /// the gradient of aux_weight * aux, equal for every row of probs: aux_weight * E / M * f / T.
  Op<void(Stream&, const RouterLosses&, std::span<const ConstView> counts,
          std::span<const ConstView> prob_sums, std::span<const ConstView> squares, View aux,
          View z, View dprobs)>
      router_losses;

  // ---- dispatch and combine ------------------------------------------------------------------
  /// Sorts the choices by expert, keeping token order: offsets i32 [1, E+1], source i32 [1, R],
  /// row_of i32 [T, k] (RoutingView). `position` i32 [1, E], a permutation: expert e is the
  /// position[e]-th of the order, so that offsets belong to positions. Empty: by number.
  Op<void(Stream&, ConstView choice, ConstView position, View offsets, View source, View row_of)>
      route;
  /// rows[r] = x[source[r] / k], k = R / T; x [T, H], source i32 [1, R] (RoutingView), rows [R, H].
  /// `part`: offsets of neighbouring experts, at least one; only the rows from its first to its last
  /// element are written. Empty: all rows.
  Op<void(Stream&, ConstView x, ConstView source, ConstView part, View rows)> permute;
  /// out[t] = base[t] + sum over j, in order, of weight[t, j] * rows[row_of[t, j]]. An empty base
  /// is zero, an empty weight is one. out may be base. The routing's offsets say which rows are
  /// summed: those from their first to their last element; rows outside are not read. Empty: all.
  Op<void(Stream&, ConstView rows, const RoutingView&, ConstView weight, ConstView base, View out)>
      combine;

  // ---- experts -------------------------------------------------------------------------------
  // A call may compute a range of its experts' width (ops/width_range.h): maps, gradients, gate, up
  // and h are then views of the range. What sums over the width is the range's share of the sum.

  /// SwiGLU of each expert over its rows: y = down(silu(gate(x)) * up(x)). x, y [R, H]; gate and up
  /// [R, I] keep gate(x) and up(x) for the backward. Any expert may have no rows. In the indexed
  /// form x has any number of rows, and so has dy below.
  Op<void(Stream&, ConstView x, const ExpertRows& rows, std::span<const ExpertView> experts,
          View gate, View up, View y)>
      experts_forward;
  /// Inputs: dy [R, H], the unweighted gradient of the combined output at each row's token, and the
  /// combine weights row_weight [1, R]. Outputs: dx [R, H]; drow_weight [1, R] = <W_down^T dy, h>,
  /// which does not need y. Adds to the gradients that are not empty. Overwrites gate and up.
  Op<void(Stream&, ConstView dy, ConstView row_weight, ConstView x, const ExpertRows& rows,
          std::span<const ExpertView> experts, View gate, View up, View dx, View drow_weight,
          std::span<const ExpertGradient> gradients)>
      experts_backward;
  /// The data half of experts_backward. Leaves the gradients of gate(x) and up(x) in gate and up,
  /// and row_weight * silu(gate) * up in h [R, I], for experts_wgrad. Rows may be computed in
  /// several calls.
  Op<void(Stream&, ConstView dy, ConstView row_weight, const ExpertRows& rows,
          std::span<const ExpertView> experts, View gate, View up, View h, View dx,
          View drow_weight)>
      experts_dgrad;
  /// The weight half, from what experts_dgrad left. Both halves give the bits of experts_backward.
  Op<void(Stream&, ConstView dy, ConstView x, const ExpertRows& rows,
          std::span<const ExpertView> experts, ConstView dgate, ConstView dup, ConstView h,
          std::span<const ExpertGradient> gradients)>
      experts_wgrad;
  /// rows[r] = values[source[r]]: puts combine weights [T, k] into expert order [1, R].
  Op<void(Stream&, ConstView values, const RoutingView&, View rows)> to_expert_order;
  /// values[source[r]] = rows[r]: puts their gradients back into token order.
  Op<void(Stream&, ConstView rows, const RoutingView&, View values)> to_token_order;

  // ---- elementwise ---------------------------------------------------------------------------
  /// h = silu(gate) * up.
  Op<void(Stream&, ConstView gate, ConstView up, View h)> swiglu_forward;
  /// From dh: gate and up are overwritten by their gradients, h by silu(gate) * up.
  Op<void(Stream&, ConstView dh, View gate, View up, View h)> swiglu_backward;
  /// y[t] = sigmoid(logits[t]) * x[t]; logits [1, T], x, y [T, N]. y may be x.
  Op<void(Stream&, ConstView logits, ConstView x, View y)> sigmoid_gate_forward;
  /// From dy and the forward's y: dx[t] = sigmoid(logits[t]) * dy[t] and, because y = sigmoid * x,
  /// dlogits[t] = (1 - sigmoid(logits[t])) * <dy[t], y[t]>. dx may be dy, dlogits may be
  /// logits.
  Op<void(Stream&, ConstView dy, ConstView logits, ConstView y, View dlogits, View dx)>
      sigmoid_gate_backward;
  /// y = min(max(x, -limit), limit) (torch.clamp). y may be x.
  Op<void(Stream&, ConstView x, double limit, View y)> clamp_forward;
  /// dx = dy where |x| <= limit, else 0; x is the clamp's input. dx may be dy.
  Op<void(Stream&, ConstView dy, ConstView x, double limit, View dx)> clamp_backward;
  /// y = a + b; y may be a or b.
  Op<void(Stream&, ConstView a, ConstView b, View y)> add;
  /// y = x, converted to y's type.
  Op<void(Stream&, ConstView x, View y)> cast;
  /// x = 0, of any type.
  Op<void(Stream&, View x)> clear;

  // ---- loss ----------------------------------------------------------------------------------
  /// Cross-entropy of x W^T against labels, in chunks of trained rows: the full logits are never
  /// stored. loss f64 [1, 1] = sum over trained rows. Unless dx is empty: dx [T, H] = gradient of
  /// scale * loss (zero where not trained), and adds to the gradients that are not empty. If the
  /// loss is infinite or NaN, its gradient, made of probabilities, can be finite. Then the first
  /// elements of dx and of the weight's gradient become NaN, so that the gradient norm shows it.
  Op<void(Stream&, ConstView x, const LinearView& head, const Labels& labels, double scale,
          View loss, View dx, const LinearGradient& gradient)>
      cross_entropy;

  // ---- optimizer -----------------------------------------------------------------------------
  /// out[i] = sum of squares of x[i], in f64 over fixed blocks, added in order; out f64 [1, n].
  /// Views are contiguous. A non-finite element makes its sum non-finite.
  Op<void(Stream&, std::span<const ConstView> x, View out)> sum_squares;
  /// For each tensor: updates master, moment1 and moment2 (f32) from the gradient, writes the
  /// rounded weight to `working` unless it is empty, and clears the gradient. Results do not depend
  /// on how tensors are grouped into calls.
  Op<void(Stream&, const AdamWOptions&, std::span<const AdamWTensors> tensors)> adamw;

  // ---- scratch -------------------------------------------------------------------------------
  // Bounds of the scratch that ops take, for at most the given number of rows. `rank`: the largest
  // rank of the low-rank pairs, 0 if there are none. For attention, `tokens` bounds the query rows,
  // and max(tokens, longest) the key rows. For experts, `segments` bounds those of all experts, `rows`
  // the rows of gate and up, and `inputs` is the rows of x. `compute`: bf16 if any product rounds to it.
  Op<ScratchNeed(int64_t rows, int64_t out, int64_t in, int64_t rank)> linear_scratch;
  Op<ScratchNeed(int64_t rows, int64_t segments, int64_t hidden, int64_t width, int64_t rank,
                 Compute compute, int64_t inputs)>
      experts_scratch;
  Op<ScratchNeed(const AttentionShape&, int64_t tokens, int64_t longest)> attention_scratch;
  Op<ScratchNeed(int64_t tokens, int64_t hidden, int64_t vocabulary, int64_t rank)>
      cross_entropy_scratch;
  /// For sum_squares over `views` views with `elements` elements in total.
  Op<ScratchNeed(int64_t views, int64_t elements)> sum_squares_scratch;
  Op<ScratchNeed(int64_t layers, int64_t experts)> router_losses_scratch;
  /// For norms, embedding, elementwise ops, routing and adamw, on rows of `width` elements.
  Op<ScratchNeed(int64_t rows, int64_t width)> row_scratch;

 private:
  std::vector<const AnyOp*> all_;
};

/// The function type of an op. `OpFunction<&OpTable::rope> rope;` declares an implementation, so
/// that other ops of the same back end can call it.
template <auto Member>
using OpFunction =
    typename std::remove_cvref_t<decltype(std::declval<OpTable&>().*Member)>::Function;

}  // namespace hearth
