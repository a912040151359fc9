// The instruction sets that products are written for, and how HEARTH_ISA chooses one of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth {

/// In rising order: each includes those before it.
enum class CpuIsa : uint8_t { below_avx2, avx2, avx512, avx512_bf16, amx };

/// The name as HEARTH_ISA takes it: "avx2", "avx512", "avx512_bf16", "amx".
std::string_view name_of(CpuIsa isa);

/// The instruction set that HEARTH_ISA names. Usage error for any other text.
CpuIsa parse_isa(const std::string& text);

/// Usage error if `asked` is above what the machine has: a run must not compute with less than it
/// was asked to test.
void require_isa(CpuIsa asked, CpuIsa machine);

constexpr bool has_avx512(CpuIsa isa) { return isa >= CpuIsa::avx512; }
/// Whether products of bf16 run in hardware, where they beat f32.
constexpr bool has_fast_bf16(CpuIsa isa) { return isa >= CpuIsa::avx512_bf16; }

}  // namespace hearth
