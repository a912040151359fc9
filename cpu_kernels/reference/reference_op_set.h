// The op set behind `reference_ops()`.
#pragma once

#include "ops/op_set.h"

namespace hearth {

class ReferenceOps final : public OpSet {
 public:
  static constexpr std::string_view kName = "reference";
  ReferenceOps();
  std::string_view name() const override { return kName; }
  bool supports(DType activations, Compute compute) const override;
};

namespace reference {

// Ops that other ops call.
OpFunction<&OpTable::linear_forward> linear_forward;
OpFunction<&OpTable::linear_dgrad> linear_dgrad;
OpFunction<&OpTable::linear_wgrad> linear_wgrad;
OpFunction<&OpTable::linear_scratch> linear_scratch;
OpFunction<&OpTable::swiglu_forward> swiglu_forward;
OpFunction<&OpTable::swiglu_backward> swiglu_backward;

/// Each function adds the ops of the source file that it is named for.
void add_attention(OpTable& ops);
void add_cross_entropy(OpTable& ops);
void add_elementwise(OpTable& ops);
void add_embedding(OpTable& ops);
void add_experts(OpTable& ops);
void add_linear(OpTable& ops);
void add_optimizer(OpTable& ops);
void add_rmsnorm(OpTable& ops);
void add_rope(OpTable& ops);
void add_router(OpTable& ops);
void add_router_losses(OpTable& ops);
void add_routing(OpTable& ops);
void add_scratch(OpTable& ops);

}  // namespace reference

}  // namespace hearth
