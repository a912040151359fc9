// The instruction sets that products are written for, and how HEARTH_ISA chooses one of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth {

/// In ascending order: each includes all before it.
enum class CpuIsa : uint8_t { below_avx2, avx2, avx512, avx512_bf16, amx };

/// The name in HEARTH_ISA: "avx2", "avx512", "avx512_bf16", "amx".
std::string_view name_of(CpuIsa isa);

/// The instruction set that HEARTH_ISA names. Usage error for any other text.
CpuIsa parse_isa(const std::string& text);

/// Usage error if `asked` is above `machine`: a run must not silently compute with less.
void require_isa(CpuIsa asked, CpuIsa machine);

/// What is used unless HEARTH_ISA asks for something: all that the machine has, but pairs of bf16
/// (AVX512_BF16) only where they are faster than f32. AMD's processors compute them at twice the rate
/// of fused multiply-adds, Intel's at half of it (docs/benchmarks/ops-cpu.md).
constexpr CpuIsa preferred_isa(CpuIsa machine, bool is_intel) {
  return is_intel && machine == CpuIsa::avx512_bf16 ? CpuIsa::avx512 : machine;
}

constexpr bool has_avx512(CpuIsa isa) { return isa >= CpuIsa::avx512; }
/// Whether bf16 products run in hardware.
constexpr bool has_fast_bf16(CpuIsa isa) { return isa >= CpuIsa::avx512_bf16; }

}  // namespace hearth
