// Facts about the CPU back end, for `hearth --version` and `--compute-dtype auto`.
#pragma once

#include <string>
#include <vector>

namespace hearth {

/// The instruction set in use, in oneDNN's terms: "avx2", "avx512_core", "avx512_core_amx", ... It is
/// what the environment variable HEARTH_ISA names, for oneDNN, too; else our own products have
/// `preferred_isa` (isa.h). Usage error if that value is unknown or above the machine's. Without
/// HEARTH_ISA, oneDNN's ONEDNN_MAX_CPU_ISA lowers it. The first call fixes the result.
std::string cpu_isa();

/// "2.6.3"
std::string onednn_version();

/// Whether bf16 products run in hardware (AVX512_BF16 or AMX), which is faster than f32.
bool has_fast_bf16();

/// One line per product implementation (product.h), in order: whether this machine can use it, or
/// why not.
std::vector<std::string> matmul_variants();

}  // namespace hearth
