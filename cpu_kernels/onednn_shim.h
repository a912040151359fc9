// The parts of oneDNN (2.6 to 3.x) that this room uses: products, and facts about the machine. Only
// onednn_shim.cpp knows the differences between versions.
#pragma once

#include <string>

#include "base/arena.h"
#include "cpu_kernels/operand.h"

namespace hearth {

std::string onednn_isa();
bool onednn_has_avx512();
bool onednn_has_fast_bf16();
std::string onednn_library_version();

/// `multiply` (product.h) in bf16 by oneDNN. Fast only with a bf16 instruction set.
void onednn_multiply_bf16(Scratch& scratch, const Operand& a, const Operand& b, float* c,
                          int64_t ldc, bool accumulate);

/// Scratch bytes of `onednn_multiply_bf16`.
size_t onednn_multiply_scratch();

}  // namespace hearth
