// Ops with planted faults of the mathematics (support/planted.h). The faults are at the boundary of
// an op, so they work with every op set.
#pragma once

#include <deque>
#include <vector>

#include "layers/body.h"
#include "ops/op_set.h"

namespace hearth::test {

/// Copies the elements, row by row.
std::vector<float> copy_of(ConstView v);

/// Sets the first element to NaN, which spreads to all results. Leaves an empty view as it is.
void spoil(View v);

/// The ops for one run of one body, on its thread, in memory that the host can access. It
/// recognises the faulty call of an op by the task's values. An op without a planted fault passes
/// its arguments on.
class FaultyTask {
 public:
  FaultyTask(const BodyContext& context, TaskKind kind);
  ~FaultyTask();
  FaultyTask(const FaultyTask&) = delete;
  FaultyTask& operator=(const FaultyTask&) = delete;

  /// The op set that the body computes with.
  static const OpSet& ops();
  /// The running task of this thread, and its ops without faults.
  static const FaultyTask& current();
  const OpSet& right() const { return c_.ops; }

  void embedding_forward(Stream&, ConstView ids, ConstView table, View out) const;
  void rmsnorm_forward(Stream&, ConstView x, ConstView weight, double eps, View y, View rstd) const;
  void rmsnorm_backward(Stream&, ConstView dy, ConstView x, ConstView weight, ConstView rstd,
                        View dx, View weight_gradient) const;
  void linear_forward(Stream&, ConstView x, const LinearView& w, View y) const;
  void linear_dgrad(Stream&, ConstView dy, const LinearView& w, View dx, bool accumulate) const;
  void linear_wgrad(Stream&, ConstView dy, ConstView x, const LinearView& w,
                    const LinearGradient& gradient) const;
  void rope(Stream&, View x, int64_t heads, ConstView positions, ConstView cosine, ConstView sine,
            bool inverse) const;
  void attention_forward(Stream&, const AttentionShape&, const SequenceOffsets&, ConstView q,
                         ConstView k, ConstView v, View out, View log_sum) const;
  void attention_backward(Stream&, const AttentionShape&, const SequenceOffsets&, ConstView dout,
                          ConstView q, ConstView k, ConstView v, ConstView out, ConstView log_sum,
                          View dq, View dk, View dv) const;
  void router_forward(Stream&, ConstView logits, bool normalize, View probs, View choice,
                      View weight) const;
  void router_backward(Stream&, ConstView dweight, ConstView probs, ConstView choice,
                       bool normalize, ConstView dprobs, View dlogits) const;
  void router_losses(Stream&, const RouterLosses&, std::span<const ConstView> counts,
                     std::span<const ConstView> prob_sums, std::span<const ConstView> squares,
                     View aux, View z, View dprobs) const;
  void combine(Stream&, ConstView rows, const RoutingView&, ConstView weight, ConstView base,
               View out) const;
  void experts_forward(Stream&, ConstView x, const ExpertRows& rows,
                       std::span<const ExpertView> experts, View gate, View up, View y) const;
  void experts_backward(Stream&, ConstView dy, ConstView row_weight, ConstView x,
                        const ExpertRows& rows, std::span<const ExpertView> experts, View gate,
                        View up, View dx, View drow_weight,
                        std::span<const ExpertGradient> gradients) const;
  void swiglu_backward(Stream&, ConstView dh, View gate, View up, View h) const;
  void sigmoid_gate_forward(Stream&, ConstView logits, ConstView x, View y) const;
  void sigmoid_gate_backward(Stream&, ConstView dy, ConstView logits, ConstView y, View dlogits,
                             View dx) const;
  void clamp_forward(Stream&, ConstView x, double limit, View y) const;
  void clamp_backward(Stream&, ConstView dy, ConstView x, double limit, View dx) const;
  void add(Stream&, ConstView a, ConstView b, View y) const;
  void cross_entropy(Stream&, ConstView x, const LinearView& head, const Labels& labels,
                     double scale, View loss, View dx, const LinearGradient& gradient) const;
  void adamw(Stream&, const AdamWOptions&, std::span<const AdamWTensors> tensors) const;

 private:
  /// Whether the view begins at the task's value.
  bool is(ConstView v, Value value, int32_t layer_offset = 0) const;
  /// Whether this is the weight of the attention block's slot.
  bool is_weight(ConstView v, Slot slot) const;
  LinearView wrong(const LinearView& w) const;
  std::vector<ExpertView> wrong(std::span<const ExpertView> experts) const;
  View rounded(ConstView weight) const;

  const BodyContext& c_;
  TaskKind kind_;
  const FaultyTask* outer_;                        // the thread's previous task
  mutable std::deque<std::vector<float>> memory_;  // holds views passed to ops
};

}  // namespace hearth::test
