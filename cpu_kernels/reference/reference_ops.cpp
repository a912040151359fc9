#include "reference/reference_ops.h"

#include "ops/registry.h"
#include "reference/reference_op_set.h"

namespace hearth {

const OpSet& reference_ops() {
  static const ReferenceOps ops;
  return ops;
}

void register_reference_ops() { register_op_set(reference_ops()); }

bool ReferenceOps::supports(DType activations, Compute) const {
  return activations == DType::f32 || activations == DType::f64;
}

}  // namespace hearth
