// Keys of config.json that families share, each read as transformers reads it. A family calls what
// its config class honours; a key that it does not call for has no effect. All errors are input
// errors naming key and value.
#pragma once

#include "model/config_reader.h"
#include "model/spec.h"

namespace hearth {

/// What every family has: vocabulary, hidden size, layers (all with experts and without a window until
/// a family says otherwise), norms' epsilon, tied head, positions, initializer_range, pad_token_id;
/// heads, key-value heads, the size of a head; the base of the rotary positions, at the top
/// (transformers 4) or in rope_parameters (5). Refuses what no family computes: quantized weights,
/// layers of different sizes, attention other than causal and plain.
/// `source` names the file; `kv_heads_may_lack`: where transformers then takes as many as there are
/// heads.
ModelSpec read_decoder(const ConfigReader& config, const std::string& source,
                       bool kv_heads_may_lack);

/// Number of experts (num_experts and num_local_experts mean the same) and their width under the keys
/// that the family has for them, and experts a token.
void read_experts(const ConfigReader& config, std::string_view count_key,
                  std::string_view width_key, ModelSpec& spec);

/// Which layers have experts (decoder_sparse_step, mlp_only_layers), and the width of the others.
void read_dense_layers(const ConfigReader& config, ModelSpec& spec);

/// sliding_window in all layers; `null` is none.
void read_window(const ConfigReader& config, ModelSpec& spec);

/// For families whose windows transformers does not take from layer_types: it must say what the
/// other keys say, else it is open what was meant.
void check_layer_types(const ConfigReader& config, const ModelSpec& spec);

/// The last check of a spec: its sizes together make no more than 2^50 parameters.
void check_total(const ConfigReader& config, const ModelSpec& spec);

inline constexpr int64_t kMaxWidth = int64_t{1} << 22;            // of experts and MLPs
inline constexpr int64_t kMaxPositions = (int64_t{1} << 31) - 1;  // and windows

}  // namespace hearth
