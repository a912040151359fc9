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
bool onednn_has_amx();
std::string onednn_library_version();

/// `multiply` (product.h) by oneDNN. The library always gets tiles of the same size, filled up with
/// zeros, so an element's bits depend on its row and column alone. bf16 is fast only with a bf16
/// instruction set, and needs AVX-512.
void onednn_multiply(Scratch& scratch, bool bf16, const Operand& a, const Operand& b, float* c,
                     int64_t ldc, bool accumulate);

/// Scratch bytes of `onednn_multiply`.
size_t onednn_multiply_scratch();

}  // namespace hearth
