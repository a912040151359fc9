// The op set behind `cpu_ops()`.
#pragma once

#include "ops/op_set.h"

namespace hearth {

class CpuOps final : public OpSet {
 public:
  static constexpr std::string_view kName = "cpu";
  CpuOps();
  std::string_view name() const override { return kName; }
  std::string instructions() const override;
  bool supports(DType activations, Compute compute) const override;
  bool has_in_hardware(Compute compute) const override;
  void assume_bf16(std::optional<bool> there) const override;
};

/// Each function adds the ops of the source file that it is named for.
namespace cpu {
void add_attention_backward(OpTable& ops);
void add_attention_forward(OpTable& ops);
void add_cross_entropy(OpTable& ops);
void add_elementwise(OpTable& ops);
void add_embedding(OpTable& ops);
void add_experts_backward(OpTable& ops);
void add_experts_forward(OpTable& ops);
void add_linear(OpTable& ops);
void add_optimizer(OpTable& ops);
void add_rmsnorm(OpTable& ops);
void add_rope(OpTable& ops);
void add_router(OpTable& ops);
void add_router_losses(OpTable& ops);
void add_routing(OpTable& ops);
void add_scratch_needs(OpTable& ops);
}  // namespace cpu

}  // namespace hearth
