// The back ends of this build. A new one joins every op test by its line here.
#pragma once

#include <vector>

#include "cpu_kernels/cpu_ops.h"
#include "ops/registry.h"
#include "reference/reference_ops.h"

namespace hearth::test {

inline void register_all_op_sets() {
  static const bool registered = [] {
    register_reference_ops();
    register_cpu_ops();
    return true;
  }();
  static_cast<void>(registered);
}

inline const std::vector<const OpSet*>& all_op_sets() {
  register_all_op_sets();
  return op_sets();
}

}  // namespace hearth::test
