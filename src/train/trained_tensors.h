// Trained tensors in the weights files of a saved state, and a check of --out. Private to src/train/.
#pragma once

#include <span>
#include <string>

#include "checkpoint/safetensors.h"
#include "model/parameter_table.h"

namespace hearth {

/// The tensor of the table that an entry of the file is: F32, of the same size. Input error that
/// names the tensor if it does not fit.
TensorId trained_tensor(const SafetensorsFile& file, const SafetensorsEntry& entry,
                        const ParameterTable& table);

/// Replaces what was trained, rounded once to the type of each tensor's home.
void read_trained(std::span<const SafetensorsFile> files, ParameterTable& table);

/// Usage error if `out` exists.
void require_new(const std::string& out);

}  // namespace hearth
