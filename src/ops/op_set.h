// The op set: every mathematical operation of a training step, each with its backward.
//
// One class says the contract; `reference/` (plain loops, f32 and f64), `cpu_kernels/` (packed
// products of its own, oneDNN for bf16) and later devices implement it; one test definition
// (tests/ops) runs on all.
//
// Conventions. T tokens, H hidden size, V vocabulary, E experts, k experts a token, R = T*k rows of
// routed tokens, N sequences. Activations are f32 (f64 in the reference's checks); weights come in
// any stored type. Outputs are overwritten unless the comment says "adds to". Gradients of weights
// are f32 and are always added to. Inputs and outputs never overlap unless said. An op opens no
// threads: it cuts tiles by shape alone and the stream's pool runs them, so bits do not depend on
// the number of workers. A wrong shape or type is a bug (std::logic_error), not an input error.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/stream.h"
#include "ops/view.h"

namespace hearth {

/// Scratch that an op takes: once for the op, and for each worker. Needs of ops that follow each
/// other combine by maximum.
struct ScratchNeed {
  size_t shared = 0;
  size_t per_worker = 0;
};
inline ScratchNeed max_of(ScratchNeed a, ScratchNeed b) {
  return {a.shared > b.shared ? a.shared : b.shared,
          a.per_worker > b.per_worker ? a.per_worker : b.per_worker};
}

/// Packed sequences: sequence n has the query rows [query[n], query[n+1]) and the key rows
/// [key[n], key[n+1]), int32 [1, N+1]. Training has equal offsets; decoding has fewer queries, which
/// are the last positions of their sequence.
struct SequenceOffsets {
  ConstView query, key;
  int64_t count() const { return query.cols - 1; }
};

/// Shape of an attention: `heads` query heads in groups over `kv_heads`, each of `head_dim`.
/// `window` > 0: a query sees the last `window` keys up to itself, 0: all up to itself.
/// `compute` bf16: operands of products (q, k, v, dout, and within the op softmax's weights and
/// their gradients) may be rounded to bf16; sums, softmax and log_sum are f32. A back end may compute
/// more exactly than asked.
struct AttentionShape {
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t window = 0;
  double scale = 0;  // of q.k before softmax
  Compute compute = Compute::f32;
};

/// The rows of routed tokens sorted by expert, tokens in order within an expert. Made by `route`.
struct RoutingView {
  ConstView offsets;  // i32 [1, E+1]: rows of expert e are [offsets[e], offsets[e+1])
  ConstView source;   // i32 [1, R]: row r is choice source[r] = t * k + j, token t's j-th
  ConstView row_of;   // i32 [T, k]: the row of choice (t, j)
};

/// One AdamW update (torch.optim.AdamW's rule): decoupled decay lr*wd*w, then
/// w -= lr * (m / c1) / (sqrt(v / c2) + eps) with c1 = 1 - beta1^step, c2 = 1 - beta2^step.
struct AdamWOptions {
  double lr = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  int64_t step = 1;           // from 1
  double gradient_scale = 1;  // the clip factor
};

/// What an AdamW update reads and writes of a tensor, or of a run of them: contiguous views of one
/// shape, that overlap with no other's.
struct AdamWTensors {
  View gradient, master, moment1, moment2;
  View working = {};  // may be empty
};

/// A library found on this machine.
struct OpLibrary {
  std::string name, version;
};

/// The labels of T rows: ids i32 [1, T], -100 = not trained. The caller may know from the data how few
/// rows are trained, so that a device, which tells the host no counts, need not take all for trained.
struct Labels {
  ConstView ids;
  int64_t most_trained;  // at least as many as are; more that are would be a bug

  Labels(ConstView labels) : Labels(labels, labels.cols) {}
  Labels(ConstView labels, int64_t most) : ids(labels), most_trained(most) {}
};

/// The router's losses over a micro-batch.
struct RouterLosses {
  bool pooled = false;    // one share and mean an expert over all layers, as transformers does
  double tokens = 0;      // T, of the micro-batch
  double aux_weight = 0;  // of the auxiliary loss in what is differentiated
};

class OpSet {
 public:
  virtual ~OpSet() = default;
  virtual std::string_view name() const = 0;
  /// The instructions chosen on this machine, which results may depend on; empty where none are.
  virtual std::string instructions() const { return {}; }
  /// The libraries that ops call where they have kernels of their own, too; results depend on them to
  /// the last bits.
  virtual std::vector<OpLibrary> libraries() const { return {}; }
  /// Whether ops of this process call that library from now on; they do from the start, if it is
  /// there. Not while ops run.
  virtual void call_library(const std::string& name, bool called) const {
    static_cast<void>(name), static_cast<void>(called);
  }
  /// Whether activations may be of this type; and weights computed so.
  virtual bool supports(DType activations, Compute compute) const = 0;
  /// Whether the hardware computes products so, at more than the rate of f32 (`--compute-dtype
  /// auto`); emulation is no reason to take it.
  virtual bool has_in_hardware(Compute compute) const { return compute == Compute::f32; }

  // ---- embedding -----------------------------------------------------------------------------
  /// out[t] = table[ids[t]]; ids i32 [1, T], table [V, H] of any stored type, out [T, H].
  virtual void embedding_forward(Stream&, ConstView ids, ConstView table, View out) const = 0;
  /// table_gradient[ids[t]] += dout[t], tokens in order; not for the id `padding` (-1: none), whose
  /// row gets no gradient from lookups (torch's padding_idx).
  virtual void embedding_backward(Stream&, ConstView ids, ConstView dout, int64_t padding,
                                  View table_gradient) const = 0;

  // ---- norm ----------------------------------------------------------------------------------
  /// y = x * rstd * weight, rstd = (mean(x^2) + eps)^-1/2 a row; x, y [M, D], weight [1, D] of any
  /// stored type, rstd [1, M]. y may be x.
  virtual void rmsnorm_forward(Stream&, ConstView x, ConstView weight, double eps, View y,
                               View rstd) const = 0;
  /// dx from dy; adds to weight_gradient [1, D] unless it is empty. dx may be dy. Partial sums of
  /// the weight gradient go over fixed blocks of rows.
  virtual void rmsnorm_backward(Stream&, ConstView dy, ConstView x, ConstView weight,
                                ConstView rstd, View dx, View weight_gradient) const = 0;

  // ---- linear --------------------------------------------------------------------------------
  /// y = x W^T + b + scale * (drop(x) A^T) B^T, as far as the map has the parts; x [M, in],
  /// y [M, out].
  virtual void linear_forward(Stream&, ConstView x, const LinearView& w, View y) const = 0;
  /// dx = dy W + drop(scale * (dy B) A), or dx += with `accumulate`; dy [M, out], dx [M, in].
  virtual void linear_dgrad(Stream&, ConstView dy, const LinearView& w, View dx,
                            bool accumulate) const = 0;
  /// Adds to the gradients that are there: of W dy^T x, of b the column sums of dy, of A
  /// (scale * dy B)^T drop(x), of B dy^T (scale * drop(x) A^T). f32 sums over fixed blocks of rows,
  /// in order.
  virtual void linear_wgrad(Stream&, ConstView dy, ConstView x, const LinearView& w,
                            const LinearGradient& gradient) const = 0;

  // ---- rope ----------------------------------------------------------------------------------
  /// Rotates each head of x [T, heads * d] in place, halves convention: (x1, x2) becomes
  /// (x1 c - x2 s, x2 c + x1 s) with c, s = cosine, sine [positions, d/2] at row positions[t].
  /// `inverse` rotates back: the backward.
  virtual void rope(Stream&, View x, int64_t heads, ConstView positions, ConstView cosine,
                    ConstView sine, bool inverse) const = 0;

  // ---- attention -----------------------------------------------------------------------------
  /// Causal softmax attention within each sequence; no score matrix as a whole. q, out
  /// [Tq, heads * d]; k, v [Tk, kv_heads * d]; log_sum [Tq, heads] keeps log sum exp of the scaled
  /// scores for the backward. Query i of a sequence with n queries and m keys sees keys up to
  /// m - n + i.
  virtual void attention_forward(Stream&, const AttentionShape&, const SequenceOffsets&,
                                 ConstView q, ConstView k, ConstView v, View out,
                                 View log_sum) const = 0;
  /// dq, dk, dv from dout. Needs q, k, v, out and log_sum of the forward.
  virtual void attention_backward(Stream&, const AttentionShape&, const SequenceOffsets&,
                                  ConstView dout, ConstView q, ConstView k, ConstView v,
                                  ConstView out, ConstView log_sum, View dq, View dk,
                                  View dv) const = 0;

  // ---- router --------------------------------------------------------------------------------
  /// probs = softmax(logits) [T, E]; choice i32 [T, k]: the k largest, largest first, the lowest
  /// index on ties; weight [T, k]: their probabilities, divided by their sum if `normalize`.
  virtual void router_forward(Stream&, ConstView logits, bool normalize, View probs, View choice,
                              View weight) const = 0;
  /// dlogits [T, E] from dweight [T, k]; choices are constants. `dprobs` f32/f64 [1, E] is added to
  /// every row's gradient of probs (the auxiliary loss), empty = none.
  virtual void router_backward(Stream&, ConstView dweight, ConstView probs, ConstView choice,
                               bool normalize, ConstView dprobs, View dlogits) const = 0;
  /// Sums for the auxiliary loss: counts[e] = number of choices of e, prob_sums[e] = sum of
  /// probs[t, e]; both f64 [1, E], overwritten.
  virtual void router_sums(Stream&, ConstView probs, ConstView choice, View counts,
                           View prob_sums) const = 0;

  /// Router z-loss (ST-MoE, arXiv 2202.08906, equation 5): log_sum [T, 1] is log sum exp of a row of
  /// logits [T, E]; `squares` f64 [1, 1] the sum of their squares over the rows, overwritten.
  virtual void router_z_forward(Stream&, ConstView logits, View log_sum, View squares) const = 0;
  /// dlogits += scale * d squares / d logits; probs as of router_forward.
  virtual void router_z_backward(Stream&, ConstView log_sum, ConstView probs, double scale,
                                 View dlogits) const = 0;

  /// The losses of M layers, T tokens each, from their sums: counts[l] and prob_sums[l], f64 [1, E]
  /// (router_sums), squares[l], f64 [1, 1] (router_z_forward; none: no z-loss). With f = counts / T,
  /// P = prob_sums / T, both replaced by their mean over the layers if `pooled`:
  ///   aux = E / M * sum over layers, in order, and experts of f P;   z = sum of squares / (M T)
  /// both f64 [1, 1], zero where M is 0. dprobs [M, E] of the type of activations, unless it is
  /// empty: the gradient of aux_weight * aux for every row of probs, choices being constants:
  /// aux_weight * E / M * f / T.
  virtual void router_losses(Stream&, const RouterLosses&, std::span<const ConstView> counts,
                             std::span<const ConstView> prob_sums,
                             std::span<const ConstView> squares, View aux, View z,
                             View dprobs) const = 0;

  // ---- dispatch and combine ------------------------------------------------------------------
  /// Sorts the choices by expert, keeping token order: offsets i32 [1, E+1], source i32 [1, R],
  /// row_of i32 [T, k] (RoutingView).
  virtual void route(Stream&, ConstView choice, View offsets, View source, View row_of) const = 0;
  /// rows[r] = x[source[r] / k]; x [T, H], rows [R, H].
  virtual void permute(Stream&, ConstView x, const RoutingView&, View rows) const = 0;
  /// out[t] = base[t] + sum over j, in order, of weight[t, j] * rows[row_of[t, j]]. An empty base
  /// is zero, an empty weight is one. out may be base.
  virtual void combine(Stream&, ConstView rows, const RoutingView&, ConstView weight,
                       ConstView base, View out) const = 0;

  // ---- experts -------------------------------------------------------------------------------
  /// SwiGLU of each expert over its rows: y = down(silu(gate(x)) * up(x)). x, y [R, H]; gate and up
  /// [R, I] keep gate(x) and up(x) for the backward. Any expert may have no rows.
  virtual void experts_forward(Stream&, ConstView x, ConstView offsets,
                               std::span<const ExpertView> experts, View gate, View up,
                               View y) const = 0;
  /// From dy [R, H], the gradient of the combined output at each row's token (not yet weighted),
  /// and the combine weights row_weight [1, R]: dx [R, H]; drow_weight [1, R] =
  /// <W_down^T dy, h> (so that y need not be kept); adds to the gradients that are there. gate and
  /// up are overwritten.
  virtual void experts_backward(Stream&, ConstView dy, ConstView row_weight, ConstView x,
                                ConstView offsets, std::span<const ExpertView> experts, View gate,
                                View up, View dx, View drow_weight,
                                std::span<const ExpertGradient> gradients) const = 0;
  /// rows[r] = values[source[r]]: combine weights [T, k] into expert order [1, R].
  virtual void to_expert_order(Stream&, ConstView values, const RoutingView&, View rows) const = 0;
  /// values[source[r]] = rows[r]: their gradients back into token order.
  virtual void to_token_order(Stream&, ConstView rows, const RoutingView&, View values) const = 0;

  // ---- elementwise ---------------------------------------------------------------------------
  /// h = silu(gate) * up.
  virtual void swiglu_forward(Stream&, ConstView gate, ConstView up, View h) const = 0;
  /// From dh: gate and up are overwritten by their gradients, h by silu(gate) * up.
  virtual void swiglu_backward(Stream&, ConstView dh, View gate, View up, View h) const = 0;
  /// y[t] = sigmoid(logits[t]) * x[t]; logits [1, T], x, y [T, N]. y may be x.
  virtual void sigmoid_gate_forward(Stream&, ConstView logits, ConstView x, View y) const = 0;
  /// From dy and the forward's y: dx[t] = sigmoid(logits[t]) * dy[t] and, because y = sigmoid * x,
  /// dlogits[t] = (1 - sigmoid(logits[t])) * <dy[t], y[t]>. dx may be dy,
  /// dlogits may be logits.
  virtual void sigmoid_gate_backward(Stream&, ConstView dy, ConstView logits, ConstView y,
                                     View dlogits, View dx) const = 0;
  /// y = x, but at least -limit and at most limit (torch.clamp). y may be x.
  virtual void clamp_forward(Stream&, ConstView x, double limit, View y) const = 0;
  /// dx = dy where |x| <= limit, elsewhere 0; x as before the clamp. dx may be dy.
  virtual void clamp_backward(Stream&, ConstView dy, ConstView x, double limit, View dx) const = 0;
  /// y = a + b; y may be a or b.
  virtual void add(Stream&, ConstView a, ConstView b, View y) const = 0;
  /// y = x in y's type.
  virtual void cast(Stream&, ConstView x, View y) const = 0;
  /// x = 0, of any type.
  virtual void clear(Stream&, View x) const = 0;

  // ---- loss ----------------------------------------------------------------------------------
  /// Cross-entropy of x W^T against labels, in chunks of trained rows, so that logits never exist as a
  /// whole. loss f64 [1, 1] = sum over trained rows. Unless dx is empty:
  /// dx [T, H] = gradient of scale * loss (zero where not trained), and the gradients that are
  /// there are added to. A loss may be infinite or NaN where its gradient, of probabilities, is
  /// finite: then the first element of dx, and of the weight's gradient if there is one, becomes NaN,
  /// so that the norm of the gradients shows it.
  virtual void cross_entropy(Stream&, ConstView x, const LinearView& head, const Labels& labels,
                             double scale, View loss, View dx,
                             const LinearGradient& gradient) const = 0;

  // ---- optimizer -----------------------------------------------------------------------------
  /// out[i] = sum of squares of x[i], in f64 over fixed blocks, added in order; out f64 [1, n].
  /// Views are contiguous. Non-finite elements make a sum non-finite.
  virtual void sum_squares(Stream&, std::span<const ConstView> x, View out) const = 0;
  /// For each of the tensors: updates master, moment1, moment2 (f32) from gradient, writes the
  /// rounded weight to `working` unless it is empty, and clears the gradient. An element's result
  /// does not depend on what else is in the list.
  virtual void adamw(Stream&, const AdamWOptions&, std::span<const AdamWTensors> tensors) const = 0;

  // ---- scratch -------------------------------------------------------------------------------
  // Bounds of the scratch that ops take, for any numbers of rows up to those given. `rank`: the
  // largest of low-rank pairs, 0 where there is none. `tokens` of attention bounds its query rows; its
  // key rows may be as many, or as one sequence of `longest` keys has.
  virtual ScratchNeed linear_scratch(int64_t rows, int64_t out, int64_t in, int64_t rank) const = 0;
  virtual ScratchNeed experts_scratch(int64_t rows, int64_t experts, int64_t hidden, int64_t width,
                                      int64_t rank) const = 0;
  virtual ScratchNeed attention_scratch(const AttentionShape&, int64_t tokens,
                                        int64_t longest) const = 0;
  virtual ScratchNeed cross_entropy_scratch(int64_t tokens, int64_t hidden, int64_t vocabulary,
                                            int64_t rank) const = 0;
  /// Of sum_squares over `views` views with `elements` in all.
  virtual ScratchNeed sum_squares_scratch(int64_t views, int64_t elements) const = 0;
  virtual ScratchNeed router_losses_scratch(int64_t layers, int64_t experts) const = 0;
  /// Of norms, embedding, elementwise ops, routing and adamw, on rows of `width` elements.
  virtual ScratchNeed row_scratch(int64_t rows, int64_t width) const = 0;
};

}  // namespace hearth
