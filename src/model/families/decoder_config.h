// Readers of config.json keys that families share; they follow transformers. A family calls the
// readers for the keys that its config class in transformers honours. Other keys have no effect.
// All errors are input errors that name key and value.
#pragma once

#include "model/config_reader.h"
#include "model/spec.h"

namespace hearth {

/// Reads what every family has:
///   - vocabulary, hidden size, norm epsilon, tied head, positions, initializer_range, pad_token_id
///   - layers, at first all with experts and without a window
///   - heads, key-value heads, head size
///   - the rope base, at the top (transformers 4) or in rope_parameters (5)
/// Refuses quantized weights, layers of different sizes, and attention that is not plain and
/// causal. Messages name `source`. `kv_heads_may_lack`: if the number of key-value heads is absent,
/// it equals the number of heads, as in transformers.
ModelSpec read_decoder(const ConfigReader& config, const std::string& source,
                       bool kv_heads_may_lack);

/// Reads the number of experts (num_experts and num_local_experts are synonyms), their width, and
/// the experts per token. `count_key` and `width_key` are the family's keys.
void read_experts(const ConfigReader& config, std::string_view count_key,
                  std::string_view width_key, ModelSpec& spec);

/// Reads which layers have experts (decoder_sparse_step, mlp_only_layers), and the width of the
/// dense layers.
void read_dense_layers(const ConfigReader& config, ModelSpec& spec);

/// Reads sliding_window, for all layers; null: no window.
void read_window(const ConfigReader& config, ModelSpec& spec);

/// For families whose windows transformers does not take from layer_types. Refuses a layer_types
/// that contradicts the other keys.
void check_layer_types(const ConfigReader& config, const ModelSpec& spec);

/// The last check of a spec: at most 2^50 parameters in total.
void check_total(const ConfigReader& config, const ModelSpec& spec);

inline constexpr int64_t kMaxWidth = int64_t{1} << 22;            // of experts and MLPs
inline constexpr int64_t kMaxPositions = (int64_t{1} << 31) - 1;  // also of windows

}  // namespace hearth
