// `--compute-dtype`: the type of matrix products.
#pragma once

#include "layers/settings.h"
#include "setup/config.h"

namespace hearth {

/// `auto` is bf16 if the hardware has bf16 products and the checkpoint is stored in bf16, else f32.
constexpr Compute choose_compute(ComputeChoice choice, bool stored_bf16, bool in_hardware) {
  if (choice == ComputeChoice::f32) return Compute::f32;
  if (choice == ComputeChoice::bf16) return Compute::bf16;
  return in_hardware && stored_bf16 ? Compute::bf16 : Compute::f32;
}

}  // namespace hearth
