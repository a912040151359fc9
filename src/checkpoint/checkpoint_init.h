// A random checkpoint in a family's published layout.
#pragma once

#include <cstdint>
#include <string>

namespace hearth {

/// A random checkpoint for a config.json in its family's published layout: matrices normal with
/// initializer_range, drawn by (seed, tensor name, index); norms one; biases zero. `dtype` from the
/// config (torch_dtype or dtype; f32 if absent). Tokenizer files are copied from `tokenizer`
/// unless it is empty. The directory must not exist. One file up to 5 GB of weights, else shards.
void init_checkpoint(const std::string& config_path, const std::string& directory, uint64_t seed,
                     const std::string& tokenizer);

}  // namespace hearth
