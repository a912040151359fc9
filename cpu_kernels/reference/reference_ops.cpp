#include "reference/reference_ops.h"

#include "ops/registry.h"
#include "reference/reference_op_set.h"

namespace hearth {

const OpSet& reference_ops() {
  static const ReferenceOps ops;
  return ops;
}

void register_reference_ops() { register_op_set(reference_ops()); }

ReferenceOps::ReferenceOps() { add_reference_ops(*this); }

void add_reference_ops(OpTable& ops) {
  reference::add_attention(ops);
  reference::add_cross_entropy(ops);
  reference::add_elementwise(ops);
  reference::add_embedding(ops);
  reference::add_experts(ops);
  reference::add_linear(ops);
  reference::add_optimizer(ops);
  reference::add_rmsnorm(ops);
  reference::add_rope(ops);
  reference::add_router(ops);
  reference::add_router_losses(ops);
  reference::add_routing(ops);
  reference::add_scratch(ops);
}

bool ReferenceOps::supports(DType activations, Compute) const {
  return activations == DType::f32 || activations == DType::f64;
}

}  // namespace hearth
