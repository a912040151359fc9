// The adapters of a saved state: their tensors, and their scales in the manifest.
#pragma once

#include <span>

#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"
#include "model/parameter_table.h"

namespace hearth {

/// The scales of the adapters of a table: {"scale": S, "scales": {NAME: S, ...}}. "scale" is the
/// most common scale; "scales" has the other blocks, by the name of the block's first tensor. Ranks
/// follow from the shapes of A.
Json adapter_scales(const ParameterTable& table);

/// The table of `base` with the adapters that the weights of a state hold, in one file or several. Marks tensors of
/// the model that were trained beside the adapters. The table is not bound to memory. Input errors
/// name the file and the tensor that does not fit.
ParameterTable saved_adapters(const Checkpoint& base, std::span<const SafetensorsFile> weights,
                              const Json& scales);

}  // namespace hearth
