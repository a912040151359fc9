#include "model/families/decoder_config.h"

#include <algorithm>

namespace hearth {
namespace {

// Limits: far above any published model, low enough that every product of sizes fits in 63 bits.
constexpr int64_t kMaxVocabulary = (int64_t{1} << 31) - 1;  // ids are int32
constexpr int64_t kMaxHidden = int64_t{1} << 20;
constexpr int64_t kMaxHeads = int64_t{1} << 14;
constexpr int64_t kMaxHeadDim = int64_t{1} << 12;
constexpr int64_t kMaxLayers = int64_t{1} << 12;
constexpr int64_t kMaxExperts = int64_t{1} << 14;
constexpr int64_t kMaxExpertBlocks = int64_t{1} << 18;  // of all layers
constexpr int64_t kMaxStep = int64_t{1} << 31;
constexpr int64_t kMaxParameters = int64_t{1} << 50;

/// One of the objects that may describe the rotation (rope_parameters, or rope_scaling of older
/// files). Returns its theta, 0 if it has none.
double read_rope_object(const ConfigReader& config, const char* key, const std::string& source) {
  const Json* object = config.find(key);
  if (object == nullptr) return 0;
  const std::string where = source + ": " + key;
  const ConfigReader rope(*object, where);
  for (const char* name : {"rope_type", "type"}) {
    const std::string type = rope.text(name, "default");
    if (type != "default") {
      rope.refuse(name, "only the rope type \"default\" is supported");
    }
  }
  for (const auto& [name, value] : object->as_object()) {
    if (value.is_object()) rope.refuse(name, "positions that differ by layer are not supported");
  }
  if (rope.number("partial_rotary_factor", 0, 1, 1) != 1) {
    rope.refuse("partial_rotary_factor", "only 1, the whole head, is supported");
  }
  return rope.find("rope_theta") == nullptr ? 0 : rope.number("rope_theta", 1e-6, 1e18);
}

/// Two keys mean the same; `key` is the family's own.
int64_t read_expert_count(const ConfigReader& config, std::string_view key) {
  const std::string_view other = key == "num_experts" ? "num_local_experts" : "num_experts";
  const bool has_other = config.find(other) != nullptr;
  const int64_t experts =
      config.integer(config.find(key) == nullptr && has_other ? other : key, 1, kMaxExperts);
  if (has_other && config.integer(other, 1, kMaxExperts) != experts) {
    config.refuse(other, "differs from " + std::string(key) + ", " + std::to_string(experts) +
                             ", which means the same");
  }
  return experts;
}

void refuse_unsupported(const ConfigReader& config) {
  for (const char* key : {"quantization_config", "compression_config"}) {
    if (config.find(key) != nullptr) {
      config.refuse(key,
                    "quantized checkpoints are not supported; use one stored in bfloat16, "
                    "float16 or float32");
    }
  }
  if (config.find("per_layer_config") != nullptr) {
    config.refuse("per_layer_config", "layers of different sizes are not supported");
  }
}

void read_sizes(const ConfigReader& config, ModelSpec& spec) {
  spec.vocabulary = config.integer("vocab_size", 1, kMaxVocabulary);
  spec.hidden = config.integer("hidden_size", 1, kMaxHidden);
  spec.layers = config.integer("num_hidden_layers", 1, kMaxLayers);
  spec.norm_eps = config.number("rms_norm_eps", 1e-30, 1);
  spec.tied_head = config.boolean("tie_word_embeddings", false);
  spec.max_positions = config.integer("max_position_embeddings", 1, kMaxPositions);
  spec.initializer_range = config.number("initializer_range", 0, 1e3, 0.02);
  spec.moe.assign(static_cast<size_t>(spec.layers), true);
  spec.windows.assign(static_cast<size_t>(spec.layers), 0);
  // torch takes negative rows from the end; the Hub has configs with -1.
  const int64_t padding =
      config.integer("pad_token_id", -spec.vocabulary, spec.vocabulary - 1, spec.vocabulary);
  if (padding < spec.vocabulary) {
    spec.padding_id = padding < 0 ? padding + spec.vocabulary : padding;
  }
}

void read_heads(const ConfigReader& config, bool kv_heads_may_lack, ModelSpec& spec) {
  spec.heads = config.integer("num_attention_heads", 1, kMaxHeads);
  const char* kv_key = "num_key_value_heads";
  spec.kv_heads = kv_heads_may_lack ? config.integer(kv_key, 1, kMaxHeads, spec.heads)
                                    : config.integer(kv_key, 1, kMaxHeads);
  if (spec.heads % spec.kv_heads != 0) {
    config.refuse("num_key_value_heads",
                  "does not divide num_attention_heads, " + std::to_string(spec.heads));
  }
  if (config.find("head_dim") != nullptr) {
    spec.head_dim = config.integer("head_dim", 2, kMaxHeadDim);
  } else {
    if (spec.hidden % spec.heads != 0 || spec.hidden / spec.heads > kMaxHeadDim) {
      config.refuse("head_dim",
                    "hidden_size / num_attention_heads cannot stand in for it: it is not a "
                    "whole number, or above 4096");
    }
    spec.head_dim = spec.hidden / spec.heads;
  }
  if (spec.head_dim % 2 != 0) {
    config.refuse("head_dim", "the size of a head, " + std::to_string(spec.head_dim) +
                                  ", must be even for rotary positions");
  }
  if (config.number("attention_dropout", 0, 1, 0) != 0) {
    config.refuse("attention_dropout", "dropout in attention is not supported, only 0");
  }
  if (!config.boolean("is_causal", true)) {
    config.refuse("is_causal", "attention that is not causal is not supported");
  }
}

/// Several thetas that differ would be read differently by transformers 4 and 5.
void read_rope(const ConfigReader& config, const std::string& source, ModelSpec& spec) {
  const double thetas[] = {
      config.find("rope_theta") == nullptr ? 0 : config.number("rope_theta", 1e-6, 1e18),
      read_rope_object(config, "rope_parameters", source),
      read_rope_object(config, "rope_scaling", source)};
  for (const double theta : thetas) {
    if (theta == 0) continue;
    if (spec.rope_theta != 0 && theta != spec.rope_theta) {
      config.refuse("rope_theta", "differs from the rope_theta in rope_parameters or rope_scaling");
    }
    spec.rope_theta = theta;
  }
  if (spec.rope_theta == 0) {
    config.refuse("rope_theta",
                  "the base of the rotary positions is required, here or in "
                  "rope_parameters, and never guessed");
  }
  if (config.number("partial_rotary_factor", 0, 1, 1) != 1) {
    config.refuse("partial_rotary_factor", "only 1, the whole head, is supported");
  }
}

}  // namespace

ModelSpec read_decoder(const ConfigReader& config, const std::string& source,
                       bool kv_heads_may_lack) {
  ModelSpec spec;
  refuse_unsupported(config);
  read_sizes(config, spec);
  read_heads(config, kv_heads_may_lack, spec);
  read_rope(config, source, spec);
  return spec;
}

void read_experts(const ConfigReader& config, std::string_view count_key,
                  std::string_view width_key, ModelSpec& spec) {
  spec.experts = read_expert_count(config, count_key);
  spec.experts_per_token = config.integer("num_experts_per_tok", 1, kMaxExperts);
  if (spec.experts_per_token > spec.experts) {
    config.refuse("num_experts_per_tok",
                  "more than the number of experts, " + std::to_string(spec.experts));
  }
  if (spec.layers * spec.experts > kMaxExpertBlocks) {
    config.refuse("num_hidden_layers",
                  "with " + std::to_string(spec.experts) +
                      " experts per layer the model has more than 262144 experts");
  }
  spec.expert_width = config.integer(width_key, 1, kMaxWidth);
  if (config.is_null("hidden_act")) config.refuse("hidden_act", "only silu is supported");
  const std::string activation = config.text("hidden_act", "silu");
  if (activation != "silu" && activation != "swish") {  // two names of one function
    config.refuse("hidden_act", "only silu is supported");
  }
}

void read_dense_layers(const ConfigReader& config, ModelSpec& spec) {
  const int64_t step = config.integer("decoder_sparse_step", 1, kMaxStep, 1);
  for (int64_t i = 0; i < spec.layers; ++i) spec.moe[static_cast<size_t>(i)] = (i + 1) % step == 0;
  if (const Json* dense = config.find("mlp_only_layers")) {
    if (!dense->is_array()) config.refuse("mlp_only_layers", "expected a list of layer numbers");
    for (const Json& layer : dense->as_array()) {
      if (!layer.is_integer()) {
        config.refuse("mlp_only_layers", "expected a list of layer numbers");
      }
      // A number of no layer has no effect, as in transformers.
      const double i = layer.as_double();
      if (i >= 0 && i < static_cast<double>(spec.layers)) spec.moe[static_cast<size_t>(i)] = false;
    }
  }
  if (spec.moe_layers() < spec.layers || config.find("intermediate_size") != nullptr) {
    spec.dense_width = config.integer("intermediate_size", 1, kMaxWidth);
  }
}

void read_window(const ConfigReader& config, ModelSpec& spec) {
  if (config.find("sliding_window") == nullptr) return;
  spec.windows.assign(static_cast<size_t>(spec.layers),
                      config.integer("sliding_window", 1, kMaxPositions));
}

void check_layer_types(const ConfigReader& config, const ModelSpec& spec) {
  const Json* types = config.find("layer_types");
  if (types == nullptr) return;
  const std::string expected = spec.windows[0] > 0 ? "sliding_attention" : "full_attention";
  const bool fits =
      types->is_array() && static_cast<int64_t>(types->as_array().size()) == spec.layers &&
      std::all_of(types->as_array().begin(), types->as_array().end(), [&](const Json& type) {
        return type.is_string() && type.as_string() == expected;
      });
  if (!fits) {
    config.refuse("layer_types", "expected " + std::to_string(spec.layers) + " times \"" +
                                     expected + "\", as the window keys say");
  }
}

/// By the limits above the sum stays below 2^63.
void check_total(const ConfigReader& config, const ModelSpec& spec) {
  const int64_t heads = 2 * (spec.heads + spec.kv_heads) * spec.head_dim;
  const int64_t moe = spec.moe_layers();
  const int64_t rows = 2 * spec.vocabulary + spec.layers * heads +
                       moe * (spec.experts * (1 + 3 * spec.expert_width) + 3 * spec.shared_width) +
                       (spec.layers - moe) * 3 * spec.dense_width;
  if (rows > kMaxParameters / spec.hidden) {
    config.refuse("hidden_size", "with the other sizes it makes more than 2^50 parameters");
  }
}

}  // namespace hearth
