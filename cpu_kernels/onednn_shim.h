// oneDNN, 2.6 to 3.x, behind what this room needs of it: products, and what it knows of the
// machine. The differences between the versions are in onednn_shim.cpp alone.
#pragma once

#include <string>

#include "base/arena.h"
#include "cpu_kernels/operand.h"

namespace hearth {

std::string onednn_isa();
bool onednn_has_avx512();
bool onednn_has_fast_bf16();
std::string onednn_library_version();

/// `multiply` (product.h) in bf16 by oneDNN, which must have a bf16 instruction set to be fast.
void onednn_multiply_bf16(Scratch& scratch, const Operand& a, const Operand& b, float* c,
                          int64_t ldc, bool accumulate);

/// Its scratch.
size_t onednn_multiply_scratch();

}  // namespace hearth
