// The op sets of this build. An op set added here runs in every op test.
#pragma once

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "cpu_kernels/cpu_ops.h"
#include "ops/registry.h"
#include "reference/reference_ops.h"
#ifdef HEARTH_EMULATED_OPS  // defined by linking hearth_gpu_emulated
#include "cuda_emulator/emulated_ops.h"
#endif
#ifdef HEARTH_TEST_GPU  // defined by linking support/test_gpu.cpp
#include "support/test_gpu.h"
#endif

namespace hearth::test {

inline void register_all_op_sets() {
  static const bool registered = [] {
    register_reference_ops();
    register_cpu_ops();
#ifdef HEARTH_EMULATED_OPS
    register_op_set(emulated_ops());
#endif
#ifdef HEARTH_TEST_GPU
    register_gpu();
#endif
    return true;
  }();
  static_cast<void>(registered);
}

/// All op sets, or only the sets in HEARTH_TEST_OP_SETS ("cuda", "reference,cpu"), for a quick
/// check of one. An unknown name is an error, so no test passes without having run.
inline const std::vector<const OpSet*>& all_op_sets() {
  register_all_op_sets();
  static const std::vector<const OpSet*> chosen = [] {
    const char* names = std::getenv("HEARTH_TEST_OP_SETS");
    if (!names) return op_sets();
    std::vector<const OpSet*> sets;
    std::stringstream list(names);
    for (std::string name; std::getline(list, name, ',');) sets.push_back(&find_op_set(name));
    return sets;
  }();
  return chosen;
}

}  // namespace hearth::test
