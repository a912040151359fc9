// The class behind the op sets "cuda" and, in tests, "cuda-emulated". Its ops check requirements
// beyond shapes, enqueue kernels (kernels/*.cu) and return.
#pragma once

#include "gpu_kernels/ops/op_scratch.h"
#include "ops/op_set.h"

namespace hearth::HEARTH_GPU {

/// What plans ask: the types, and what the ops take of scratch. Has no ops.
class GpuOpFacts : public OpSet {
 public:
  explicit GpuOpFacts(std::string_view name) : name_(name) { add_scratch(*this); }
  std::string_view name() const override { return name_; }
  bool supports(DType activations, Compute compute) const override {
    return activations == DType::f32 && compute != Compute::f64;
  }
  bool has_in_hardware(Compute compute) const override { return compute != Compute::f64; }

 private:
  std::string_view name_;
};

/// Views and the stream's scratch are device memory (cuda_ops.h). Stateless.
class GpuOps final : public GpuOpFacts {
 public:
  static constexpr std::string_view kName = "cuda";  // name of the implementations
  explicit GpuOps(std::string_view name);
  std::vector<OpLibrary> libraries() const override;
  void call_library(const std::string& name, bool called) const override;
};

// The loss calls these ops.
OpFunction<&OpTable::linear_forward> linear_forward;
OpFunction<&OpTable::linear_dgrad> linear_dgrad;
OpFunction<&OpTable::linear_wgrad> linear_wgrad;

/// Each function adds the ops of the source file that it is named for.
void add_adamw(OpTable& ops);
void add_attention(OpTable& ops);
void add_clear(OpTable& ops);
void add_cross_entropy(OpTable& ops);
void add_elementwise(OpTable& ops);
void add_embedding(OpTable& ops);
void add_experts(OpTable& ops);
void add_linear(OpTable& ops);
void add_rmsnorm(OpTable& ops);
void add_rope(OpTable& ops);
void add_router(OpTable& ops);
void add_router_losses(OpTable& ops);
void add_routing(OpTable& ops);
void add_sum_squares(OpTable& ops);

}  // namespace hearth::HEARTH_GPU
