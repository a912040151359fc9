#include "gpu_kernels/ops/gpu_op_set.h"

#include "gpu_kernels/libraries/libraries.h"

namespace hearth::HEARTH_GPU {

GpuOps::GpuOps(std::string_view name) : GpuOpFacts(name) {
  add_adamw(*this);
  add_attention(*this);
  add_clear(*this);
  add_cross_entropy(*this);
  add_elementwise(*this);
  add_embedding(*this);
  add_experts(*this);
  add_linear(*this);
  add_rmsnorm(*this);
  add_rope(*this);
  add_router(*this);
  add_router_losses(*this);
  add_routing(*this);
  add_sum_squares(*this);
}

std::vector<OpLibrary> GpuOps::libraries() const { return found_libraries(); }

void GpuOps::call_library(const std::string& name, bool called) const {
  refuse_library(name, !called);
}

}  // namespace hearth::HEARTH_GPU
