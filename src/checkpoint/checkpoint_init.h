// Writes a random checkpoint.
#pragma once

#include <cstdint>
#include <string>

namespace hearth {

/// Writes a random checkpoint for a config.json, in its family's published layout. Matrices are
/// normal with initializer_range, drawn by (seed, tensor name, index); norms are one; biases are
/// zero. The type is the config's dtype or torch_dtype; f32 if absent. Copies tokenizer files from
/// `tokenizer` unless it is empty. `directory` must not exist. Writes one file for up to 5 GB of
/// weights, else shards.
void init_checkpoint(const std::string& config_path, const std::string& directory, uint64_t seed,
                     const std::string& tokenizer);

}  // namespace hearth
