#include "cpu_kernels/cpu_ops.h"

#include "cpu_kernels/cpu_info.h"

#include "cpu_kernels/cpu_op_set.h"
#include "ops/registry.h"

namespace hearth {

const OpSet& cpu_ops() {
  static const CpuOps ops;
  return ops;
}

void register_cpu_ops() { register_op_set(cpu_ops()); }

bool CpuOps::supports(DType activations, Compute compute) const {
  return activations == DType::f32 && compute != Compute::f64;
}

bool CpuOps::has_in_hardware(Compute compute) const {
  return compute == Compute::f32 || (compute == Compute::bf16 && has_fast_bf16());
}

}  // namespace hearth
