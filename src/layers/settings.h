// Settings of kernels and layers, besides the model. Constant over a run and part of its identity.
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
  double z_loss = 0;  // coefficient of the router's z-loss; 0: it is not computed

  double lora_dropout = 0;  // rate of dropout of the inputs of adapters, in training
  uint64_t seed = 0;        // of dropout and noise
  double noise = 0;         // of embeddings in training (NEFTune's alpha); 0: none

  /// Whether experts that are at another place than the dense parts of their layer return one sum per
  /// token instead of its rows. Changes rounding (docs/numbers.md).
  bool partial_sums = false;

  AdamWOptions adamw;        // the options that do not change between steps
  double lora_plus = 1;      // the learning rate of B of adapters, relative to that of A (LoRA+)
  double max_grad_norm = 1;  // 0 = off

  /// Compute type of the router and of the shared expert's gate. f32 even if `compute` is bf16,
  /// because rounding there changes which experts run and how they are weighted.
  Compute router_compute() const { return activations == DType::f64 ? Compute::f64 : Compute::f32; }
};

}  // namespace hearth
