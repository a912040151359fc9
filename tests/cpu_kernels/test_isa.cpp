// Which instruction sets HEARTH_ISA may name, as functions of a machine that need not be this one.
#include "cpu_kernels/isa.h"

#include <catch2/catch_test_macros.hpp>

#include "base/error.h"
#include "cpu_kernels/cpu_info.h"
#include "support/raises.h"

using namespace hearth;
using namespace hearth::test;

TEST_CASE("isa: names, and what each has") {
  using enum CpuIsa;
  for (const CpuIsa isa : {avx2, avx512, avx512_bf16, amx}) {
    CHECK(parse_isa(std::string(name_of(isa))) == isa);
  }
  CHECK_FALSE(has_avx512(below_avx2));
  CHECK_FALSE(has_avx512(avx2));
  CHECK(has_avx512(avx512));
  CHECK_FALSE(has_fast_bf16(avx512));
  CHECK(has_fast_bf16(avx512_bf16));
  CHECK(has_fast_bf16(amx));
  for (const char* text : {"", "AVX2", "avx", "avx512_core", "below avx2", "avx2 "}) {
    const Raised raised = raised_by([&] { parse_isa(text); });
    CHECK(raised.code == ExitCode::usage);
    CHECK(raised.says("expected one of avx2, avx512, avx512_bf16, amx"));
  }
}

TEST_CASE("isa: pairs of bf16 only where they are faster than f32, unless asked for") {
  using enum CpuIsa;
  for (const CpuIsa machine : {below_avx2, avx2, avx512, avx512_bf16, amx}) {
    CHECK(preferred_isa(machine, false) == machine);
    CHECK(preferred_isa(machine, true) == (machine == avx512_bf16 ? avx512 : machine));
  }
}

TEST_CASE("isa: never above what the machine has") {
  using enum CpuIsa;
  for (const CpuIsa machine : {below_avx2, avx2, avx512, avx512_bf16, amx}) {
    for (const CpuIsa asked : {avx2, avx512, avx512_bf16, amx}) {
      const Raised raised = raised_by([&] { require_isa(asked, machine); });
      CHECK(raised.message.empty() == (asked <= machine));
      if (asked <= machine) continue;
      CHECK(raised.code == ExitCode::usage);
      CHECK(raised.says("this machine has " + std::string(name_of(machine))));
    }
  }
  CHECK(raised_by([] { require_isa(amx, avx512); }).says("give one of avx2, avx512, or unset it"));
  CHECK(raised_by([] { require_isa(avx2, below_avx2); }).says("unset it"));
}
