// Adapters of a saved state: what its manifest must tell of them beside their tensors, and back.
#pragma once

#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"
#include "model/parameter_table.h"

namespace hearth {

/// Scales of the adapters of a table: {"scale": S, "scales": {NAME: S, ...}}: that of most blocks,
/// and the others by the name of the block's first tensor. Ranks are the shapes of A.
Json adapter_scales(const ParameterTable& table);

/// The table of `base` with the adapters that a state's file of weights holds, and with the model's
/// tensors that were trained beside them marked; not bound to memory. Input errors name the file and
/// the tensor that does not fit.
ParameterTable saved_adapters(const Checkpoint& base, const SafetensorsFile& weights,
                              const Json& scales);

}  // namespace hearth
