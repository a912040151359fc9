#include "cpu_kernels/cpu_ops.h"

#include "cpu_kernels/cpu_info.h"

#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/product.h"
#include "ops/registry.h"

namespace hearth {

const OpSet& cpu_ops() {
  static const CpuOps ops;
  return ops;
}

void register_cpu_ops() { register_op_set(cpu_ops()); }

CpuOps::CpuOps() {
  cpu::add_attention_backward(*this);
  cpu::add_attention_forward(*this);
  cpu::add_cross_entropy(*this);
  cpu::add_elementwise(*this);
  cpu::add_embedding(*this);
  cpu::add_experts_backward(*this);
  cpu::add_experts_forward(*this);
  cpu::add_linear(*this);
  cpu::add_optimizer(*this);
  cpu::add_rmsnorm(*this);
  cpu::add_rope(*this);
  cpu::add_router(*this);
  cpu::add_router_losses(*this);
  cpu::add_routing(*this);
  cpu::add_scratch_needs(*this);
}

bool CpuOps::supports(DType activations, Compute compute) const {
  return activations == DType::f32 && compute != Compute::f64;
}

bool CpuOps::has_in_hardware(Compute compute) const {
  return compute == Compute::f32 || (compute == Compute::bf16 && has_bf16_products());
}

void CpuOps::assume_bf16(std::optional<bool> there) const { assume_bf16_products(there); }

}  // namespace hearth
