// What the CPU back end runs on, for `hearth --version` and for `--compute-dtype auto`.
#pragma once

#include <string>
#include <vector>

namespace hearth {

/// The instruction set in use, as oneDNN names it: "avx2", "avx512_core", "avx512_core_amx", ...
/// The environment variable HEARTH_ISA (isa.h) lowers it, for oneDNN and our own products; usage error
/// for a value that is unknown or above what the machine has. Without HEARTH_ISA, oneDNN's own
/// ONEDNN_MAX_CPU_ISA lowers it. Fixed by the first call.
std::string cpu_isa();

/// "2.6.3"
std::string onednn_version();

/// Whether products of bf16 run in hardware (AVX512_BF16 or AMX), where they beat f32.
bool has_fast_bf16();

/// The ordered lists of product implementations (product.h), one line each: whether this machine can use
/// the implementation, and if not, why.
std::vector<std::string> matmul_variants();

}  // namespace hearth
