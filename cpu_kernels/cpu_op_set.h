// The class behind `cpu_ops()`; its methods are defined one file an idea.
#pragma once

#include "ops/op_set.h"

namespace hearth {

class CpuOps final : public OpSet {
 public:
  std::string_view name() const override { return "cpu"; }
  std::string instructions() const override;  // cpu_info.cpp
  bool supports(DType activations, Compute compute) const override;
  bool has_in_hardware(Compute compute) const override;

  // embedding.cpp
  void embedding_forward(Stream&, ConstView ids, ConstView table, View out) const override;
  void embedding_backward(Stream&, ConstView ids, ConstView dout, int64_t padding,
                          View table_gradient) const override;

  // rmsnorm.cpp
  void rmsnorm_forward(Stream&, ConstView x, ConstView weight, double eps, View y,
                       View rstd) const override;
  void rmsnorm_backward(Stream&, ConstView dy, ConstView x, ConstView weight, ConstView rstd,
                        View dx, View weight_gradient) const override;

  // linear.cpp
  void linear_forward(Stream&, ConstView x, const LinearView& w, View y) const override;
  void linear_dgrad(Stream&, ConstView dy, const LinearView& w, View dx,
                    bool accumulate) const override;
  void linear_wgrad(Stream&, ConstView dy, ConstView x, const LinearView& w,
                    const LinearGradient& gradient) const override;

  // rope.cpp
  void rope(Stream&, View x, int64_t heads, ConstView positions, ConstView cosine, ConstView sine,
            bool inverse) const override;

  // attention.cpp
  void attention_forward(Stream&, const AttentionShape&, const SequenceOffsets&, ConstView q,
                         ConstView k, ConstView v, View out, View log_sum) const override;
  void attention_backward(Stream&, const AttentionShape&, const SequenceOffsets&, ConstView dout,
                          ConstView q, ConstView k, ConstView v, ConstView out, ConstView log_sum,
                          View dq, View dk, View dv) const override;

  // router.cpp
  void router_forward(Stream&, ConstView logits, bool normalize, View probs, View choice,
                      View weight) const override;
  void router_backward(Stream&, ConstView dweight, ConstView probs, ConstView choice,
                       bool normalize, ConstView dprobs, View dlogits) const override;
  void router_sums(Stream&, ConstView probs, ConstView choice, View counts,
                   View prob_sums) const override;
  void router_z_forward(Stream&, ConstView logits, View log_sum, View squares) const override;
  void router_z_backward(Stream&, ConstView log_sum, ConstView probs, double scale,
                         View dlogits) const override;

  // router_losses.cpp
  void router_losses(Stream&, const RouterLosses&, std::span<const ConstView> counts,
                     std::span<const ConstView> prob_sums, std::span<const ConstView> squares,
                     View aux, View z, View dprobs) const override;
  ScratchNeed router_losses_scratch(int64_t layers, int64_t experts) const override;

  // routing.cpp
  void route(Stream&, ConstView choice, View offsets, View source, View row_of) const override;
  void permute(Stream&, ConstView x, const RoutingView&, View rows) const override;
  void combine(Stream&, ConstView rows, const RoutingView&, ConstView weight, ConstView base,
               View out) const override;
  void to_expert_order(Stream&, ConstView values, const RoutingView&, View rows) const override;
  void to_token_order(Stream&, ConstView rows, const RoutingView&, View values) const override;

  // experts.cpp
  void experts_forward(Stream&, ConstView x, ConstView offsets, std::span<const ExpertView> experts,
                       View gate, View up, View y) const override;
  void experts_backward(Stream&, ConstView dy, ConstView row_weight, ConstView x, ConstView offsets,
                        std::span<const ExpertView> experts, View gate, View up, View dx,
                        View drow_weight, std::span<const ExpertGradient> gradients) const override;

  // elementwise.cpp
  void swiglu_forward(Stream&, ConstView gate, ConstView up, View h) const override;
  void swiglu_backward(Stream&, ConstView dh, View gate, View up, View h) const override;
  void sigmoid_gate_forward(Stream&, ConstView logits, ConstView x, View y) const override;
  void sigmoid_gate_backward(Stream&, ConstView dy, ConstView logits, ConstView y, View dlogits,
                             View dx) const override;
  void clamp_forward(Stream&, ConstView x, double limit, View y) const override;
  void clamp_backward(Stream&, ConstView dy, ConstView x, double limit, View dx) const override;
  void add(Stream&, ConstView a, ConstView b, View y) const override;
  void cast(Stream&, ConstView x, View y) const override;
  void clear(Stream&, View x) const override;

  // cross_entropy.cpp
  void cross_entropy(Stream&, ConstView x, const LinearView& head, const Labels& labels,
                     double scale, View loss, View dx,
                     const LinearGradient& gradient) const override;

  // optimizer.cpp
  void sum_squares(Stream&, std::span<const ConstView> x, View out) const override;
  void adamw(Stream&, const AdamWOptions&, std::span<const AdamWTensors> tensors) const override;

  // scratch.cpp
  ScratchNeed linear_scratch(int64_t rows, int64_t out, int64_t in, int64_t rank) const override;
  ScratchNeed experts_scratch(int64_t rows, int64_t experts, int64_t hidden, int64_t width,
                              int64_t rank) const override;
  ScratchNeed attention_scratch(const AttentionShape&, int64_t tokens,
                                int64_t longest) const override;
  ScratchNeed cross_entropy_scratch(int64_t tokens, int64_t hidden, int64_t vocabulary,
                                    int64_t rank) const override;
  ScratchNeed sum_squares_scratch(int64_t views, int64_t elements) const override;
  ScratchNeed row_scratch(int64_t rows, int64_t width) const override;
};

}  // namespace hearth
