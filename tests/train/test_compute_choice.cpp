// What `--compute-dtype auto` means, on this machine and on others.
#include "setup/compute_choice.h"

#include <catch2/catch_test_macros.hpp>

#include "cpu_kernels/isa.h"

using namespace hearth;

TEST_CASE("compute type: auto takes bf16 where the processor and the checkpoint have it") {
  using enum CpuIsa;
  for (const CpuIsa isa : {below_avx2, avx2, avx512, avx512_bf16, amx}) {
    for (const bool stored : {false, true}) {
      const bool fast = has_fast_bf16(isa);
      CHECK(choose_compute(ComputeChoice::f32, stored, fast) == Compute::f32);
      CHECK(choose_compute(ComputeChoice::bf16, stored, fast) == Compute::bf16);
      const bool bf16 = stored && (isa == avx512_bf16 || isa == amx);
      CHECK(choose_compute(ComputeChoice::automatic, stored, fast) ==
            (bf16 ? Compute::bf16 : Compute::f32));
    }
  }
}
