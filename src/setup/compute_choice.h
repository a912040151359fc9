// `--compute-dtype`: the type in which products are computed.
#pragma once

#include "layers/settings.h"
#include "setup/config.h"

namespace hearth {

/// `auto` takes bf16 only where the hardware has its products and the checkpoint is stored so.
constexpr Compute choose_compute(ComputeChoice choice, bool stored_bf16, bool in_hardware) {
  if (choice == ComputeChoice::f32) return Compute::f32;
  if (choice == ComputeChoice::bf16) return Compute::bf16;
  return in_hardware && stored_bf16 ? Compute::bf16 : Compute::f32;
}

}  // namespace hearth
