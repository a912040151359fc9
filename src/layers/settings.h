// What a run computes with, beyond the model: constant over the run, part of its identity.
#pragma once

#include <cstdint>

#include "ops/op_set.h"

namespace hearth {

/// How the auxiliary load-balancing loss pools the MoE layers.
enum class AuxLossMode : uint8_t { per_layer, hf };

struct RunSettings {
  Compute compute = Compute::f32;
  DType activations = DType::f32;  // f64 in gradient checks

  double aux_loss = 0;  // coefficient
  AuxLossMode aux_mode = AuxLossMode::per_layer;
  double z_loss = 0;  // coefficient of the router's z-loss; 0: none is computed

  double lora_dropout = 0;  // of what adapters read, in training
  uint64_t seed = 0;        // of dropout

  AdamWOptions adamw;        // what holds for every step
  double max_grad_norm = 1;  // 0 = off

  /// Of gates, which are computed in f32 whatever the compute type: they decide over all else.
  Compute router_compute() const { return activations == DType::f64 ? Compute::f64 : Compute::f32; }
};

}  // namespace hearth
