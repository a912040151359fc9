#include "cpu_kernels/isa.h"

#include <array>

#include "base/error.h"

namespace hearth {
namespace {

constexpr std::array kChoices{CpuIsa::avx2, CpuIsa::avx512, CpuIsa::avx512_bf16, CpuIsa::amx};

std::string names_up_to(CpuIsa highest) {
  std::string names;
  for (const CpuIsa isa : kChoices) {
    if (isa > highest) break;
    names += (names.empty() ? "" : ", ") + std::string(name_of(isa));
  }
  return names;
}

}  // namespace

std::string_view name_of(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::below_avx2: return "below avx2";
    case CpuIsa::avx2: return "avx2";
    case CpuIsa::avx512: return "avx512";
    case CpuIsa::avx512_bf16: return "avx512_bf16";
    case CpuIsa::amx: return "amx";
  }
  HEARTH_CHECK(false, "an instruction set without a name");
}

CpuIsa parse_isa(const std::string& text) {
  for (const CpuIsa isa : kChoices) {
    if (text == name_of(isa)) return isa;
  }
  throw usage_error("HEARTH_ISA " + quoted(text) + ": expected one of " + names_up_to(CpuIsa::amx));
}

void require_isa(CpuIsa asked, CpuIsa machine) {
  if (asked <= machine) return;
  const std::string possible = names_up_to(machine);
  throw usage_error("HEARTH_ISA " + quoted(std::string(name_of(asked))) + ": this machine has " +
                    std::string(name_of(machine)) + "; " +
                    (possible.empty() ? "unset it" : "give one of " + possible + ", or unset it"));
}

}  // namespace hearth
